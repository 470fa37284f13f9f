"""Terminals on a vocabulary: the trie of its tokens, and a terminal's walks through it."""
