#!/bin/sh
# Two tool calls, streamed, with nothing but curl. Start a server first: larksong serve
# The lines come while the model writes: a call's name first, then its arguments piece by piece.
curl --no-buffer --silent --show-error "${LARKSONG_URL:-http://127.0.0.1:8000}/v1/chat/completions" \
  --header 'Content-Type: application/json' \
  --data @- <<'JSON'
{
  "model": "SmolLM2-135M-Instruct",
  "messages": [{"role": "user", "content": "What is the weather in Amsterdam and in Tokyo?"}],
  "tools": [
    {
      "type": "function",
      "function": {
        "name": "get_weather",
        "description": "Get the current weather in a city",
        "parameters": {
          "type": "object",
          "properties": {
            "city": {"type": "string", "maxLength": 40},
            "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]}
          },
          "required": ["city", "unit"]
        }
      }
    }
  ],
  "tool_choice": "required",
  "min_tool_calls": 2,
  "max_tool_calls": 2,
  "temperature": 0,
  "stream": true
}
JSON
