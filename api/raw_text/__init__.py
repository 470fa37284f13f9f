"""Routes on text without a chat template: completions, and what a text is in tokens."""
