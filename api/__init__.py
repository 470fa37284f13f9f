"""The server: OpenAI shapes over HTTP, the command line, the demo."""
