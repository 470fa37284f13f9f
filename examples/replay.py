"""Recorded text through the whole server, as if a model wrote it: for tests, notebooks and load runs.

The tokenizer and the chat template are the small default model's; its weights are not loaded.
"""

from __future__ import annotations

from typing import Any

import openai

from larksong.api import BackgroundServer, Model, create_app
from larksong.engine.backends.model_folder import ModelFolder
from larksong.engine.backends.model_store import find_model
from larksong.engine.backends.replay import ReplayBackend
from larksong.grammars import wire_format

RECORDED = """\
<tool_call>
<function=write_file>
<parameter=path>
notes.md
</parameter>
<parameter=text>
# Notes

A line that says </parameter> is data.
</parameter>
</function>
</tool_call>"""
WRITE_FILE: Any = {
    "type": "function",
    "function": {
        "name": "write_file",
        "parameters": {
            "type": "object",
            "properties": {"path": {"type": "string"}, "text": {"type": "string"}},
            "required": ["path", "text"],
        },
    },
}


def main(tokens_per_second: float | None = 20) -> None:
    """Print each delta of the recorded call."""
    folder = ModelFolder.open(find_model())
    backend = ReplayBackend.from_folder(folder, [RECORDED], tokens_per_second=tokens_per_second)
    model = Model(backend, wire_format("qwen3_coder"))
    with BackgroundServer(create_app([model])) as server:
        client = openai.OpenAI(base_url=server.url, api_key="none needed")
        stream = client.chat.completions.create(
            model=model.name,
            messages=[{"role": "user", "content": "Write down the notes."}],
            tools=[WRITE_FILE],
            tool_choice="required",
            stream=True,
        )
        for chunk in stream:
            print(chunk.choices[0].delta.to_json(indent=None))


if __name__ == "__main__":
    main()
