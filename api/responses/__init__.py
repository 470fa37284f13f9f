"""OpenAI's Responses API as a shape of chat completions."""
