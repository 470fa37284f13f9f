"""The parse: LALR tables, stacks, and the graph of configurations with masks, transitions, events."""
