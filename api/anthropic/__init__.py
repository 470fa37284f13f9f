"""Anthropic's Messages API as a shape of chat completions."""
