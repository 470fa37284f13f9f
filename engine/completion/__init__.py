"""The shortest way to finish a turn, and the masks that keep to a budget of tokens."""
