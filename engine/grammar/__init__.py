"""Grammars as plain data: rules, terminals, attributes; and how they are printed."""
