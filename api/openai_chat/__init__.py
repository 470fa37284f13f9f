"""OpenAI's chat completions: the shape that the other APIs are written in before they become turns."""
