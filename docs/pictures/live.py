"""Draws live.svg: two calls of the small model while they grow, each delta at the moment when it came.

    make pictures

It is the picture of a real answer, served and asked for as in `larksong demo`. rich lays out its last state;
every delta has a colour of its own in it (they differ in the last bits), by which the picture's style sheet
gives each the moment at which it appears. Viewers without animation show the last state.
"""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import openai
from rich.console import Console, Group
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from larksong.api.commands.demo_view import DeltaRecord, StreamRecord
from larksong.api.runtime.background import BackgroundServer
from larksong.api.server import create_app
from larksong.api.settings.models import load_model
from larksong.api.settings.settings import Settings

PICTURE = Path(__file__).with_name("live.svg")
WIDTH = 92
_FIRST_COLOUR = 0xE6DFC0
LEAD = 1.0  # seconds before the first delta: how long the prompt was read is no news
REST = 6.0  # seconds that the last state stays
# So small a model needs to see once how it is done.
EARLIER: list[Any] = [
    {"role": "user", "content": "What is the weather in Paris?"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": "call_paris",
                "type": "function",
                "function": {"name": "get_weather", "arguments": '{"city": "Paris", "unit": "celsius"}'},
            }
        ],
    },
    {"role": "tool", "tool_call_id": "call_paris", "content": "18 degrees, light rain"},
    {"role": "assistant", "content": "It is 18 degrees in Paris, with light rain."},
]
QUESTION = "What is the weather in Amsterdam and in Tokyo?"
TOOL: dict[str, Any] = {
    "name": "get_weather",
    "description": "Get the current weather in a city",
    "parameters": {
        "type": "object",
        "properties": {
            "city": {"type": "string", "maxLength": 40},
            "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
        },
        "required": ["city", "unit"],
    },
}


def main() -> None:
    """Ask the model, draw what came."""
    record = ask()
    PICTURE.write_text(animated(*drawn(record)), encoding="utf-8")


def ask() -> StreamRecord:
    """The deltas of a real answer, each with its time."""
    model = load_model(Settings())
    with BackgroundServer(create_app([model])) as server:
        client = openai.OpenAI(base_url=server.url, api_key="none needed")
        stream = client.chat.completions.create(
            model=model.name,
            messages=[*EARLIER, {"role": "user", "content": QUESTION}],
            tools=[{"type": "function", "function": TOOL}],
            tool_choice="required",
            temperature=0,
            stream=True,
            stream_options={"include_usage": True},
            extra_body={
                "min_tool_calls": 2,
                "max_tool_calls": 2,
                "stream_options": {"include_usage": True, "include_steps": True},
            },
        )
        record = StreamRecord()
        for chunk in stream:
            record.add(chunk)
    return record


def drawn(record: StreamRecord) -> tuple[str, dict[str, float]]:
    """The last state as SVG, and when what has which colour appears, in seconds."""
    began = record.deltas[0].came
    moments = {_colour(i): LEAD + (delta.came - began) / 1000 for i, delta in enumerate(record.deltas)}
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    console.print(Padding(Text(f"> {QUESTION}", "bold"), (0, 0, 1, 0)))
    console.print(Group(*_calls(record), _table(record.deltas)))
    return console.export_svg(title="larksong", unique_id="live"), moments


def _colour(delta: int) -> str:
    return f"#{_FIRST_COLOUR + delta:06x}"


def _calls(record: StreamRecord) -> list[Panel]:
    texts = {index: Text() for index in record.calls}
    first: dict[int, str] = {}
    for number, row in enumerate(record.deltas):
        for piece in row.delta.tool_calls or ():
            assert piece.function is not None
            first.setdefault(piece.index, _colour(number))
            texts[piece.index].append(piece.function.arguments or "", _colour(number))
    return [
        Panel(texts[index], title=Text(f"{index}  {call.name}"), title_align="left", style=first[index])
        for index, call in record.calls.items()
    ]


def _table(deltas: list[DeltaRecord]) -> Table:
    table = Table("ms", "token", "tokens allowed", "call", "delta", box=None, pad_edge=False)
    for column in (0, 2, 3):
        table.columns[column].justify = "right"
    for number, row in enumerate(deltas):
        [piece] = row.delta.tool_calls or ()
        assert piece.function is not None
        name, arguments = piece.function.name, piece.function.arguments
        member, text = ("name", name) if name else ("arguments", arguments)
        cells = (
            f"{row.came:.0f}",
            json.dumps(row.step["token"], ensure_ascii=False),
            f"{row.step['allowed']:,}",
            str(piece.index),
            f'"{member}": {json.dumps(text, ensure_ascii=False)}',
        )
        table.add_row(*map(Text, cells), style=_colour(number))
    return table


def animated(svg: str, moments: dict[str, float]) -> str:
    """`svg` with the classes of these colours appearing at their moments, again and again."""
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)  # the viewer's own fonts will do
    whole = max(moments.values()) + REST

    def appear(match: re.Match[str]) -> str:
        name, colour = match[1], match[2]
        if colour not in moments:
            return match[0]
        share = 100 * moments[colour] / whole
        return (
            f".{name} {{ fill: {colour}; animation: {name} {whole:.1f}s step-end infinite }}\n"
            f"@keyframes {name} {{ 0% {{ opacity: 0 }} {share:.2f}% {{ opacity: 1 }} }}"
        )

    return re.sub(r"\.(live-r\d+) \{ fill: (#[0-9a-f]{6})[^}]*\}", appear, svg)


if __name__ == "__main__":
    main()
