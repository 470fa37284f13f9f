"""What a wire format is: what its author declares, and how grammars of whole turns are built from that."""
