"""Deterministic automata over bytes, made without a vocabulary: regular expressions, products, numbers."""
