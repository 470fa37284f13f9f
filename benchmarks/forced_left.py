"""`python -m benchmarks.forced_left`: where the forward passes of qwen3_coder turns go that are left.

Reads the recorded calls like `benchmarks.forced_tokens`, and says for each token that was not forced which
part of the text it writes; of several parts, the one that is most the model's own.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial

from rich.console import Console
from rich.table import Table

from benchmarks.forced_calls import cases_folder
from benchmarks.forced_tokens import Turn, tokenizers, turns
from larksong.engine.backends.encoding import text_ids
from larksong.engine.engine import Engine
from larksong.engine.vocabulary import Vocabulary
from larksong.grammars import wire_format

_VALUE, _NAME = "values", "names of functions and parameters"
_BREAK, _FIRST = "the line break before a value", "the line break after <tool_call>"
_TEXT_CLOSE, _OTHER = "</parameter> after raw text", "other markup"
_END = "the end of the turn"
_ORDER = (_VALUE, _NAME, _FIRST, _BREAK, _TEXT_CLOSE, _OTHER)


def main() -> None:
    folder = cases_folder()
    if folder is None:
        sys.exit("LARKSONG_CASES must name the folder with client_calls.jsonl and client_tools")
    table = Table()
    table.add_column("part")
    columns = []
    for name, (tokenizer, vocabulary) in tokenizers().items():
        for heading in ("tokens", "passes"):
            table.add_column(f"{name}: {heading}", justify="right")
        engine = Engine(vocabulary, encode=partial(text_ids, tokenizer, vocabulary))
        tokens: Counter[str] = Counter()
        passes: Counter[str] = Counter()
        for turn in turns(engine, tokenizer, wire_format("qwen3_coder"), folder):
            for part, forced in _read(turn, vocabulary):
                tokens[part] += 1
                passes[part] += not forced
        columns += [tokens, passes]
    for part in (*_ORDER, _END):
        table.add_row(part, *(str(column[part]) for column in columns))
    table.add_row("all", *(str(column.total()) for column in columns))
    Console(width=None if Console().is_terminal else 120).print(table)


def _read(turn: Turn, vocabulary: Vocabulary) -> Iterator[tuple[str, bool]]:
    """For each token its part of the turn, and whether it was forced."""
    pieces = list(_pieces(turn.name, turn.arguments))
    text = "".join(piece for piece, _ in pieces)
    if text != wire_format("qwen3_coder").render_call(turn.name, turn.arguments):
        raise ValueError(f"the turn is not cut as it is written: {text!r}")
    parts = [part for piece, part in pieces for _ in piece.encode()]
    markers = {token: marker.encode() for marker, token in vocabulary.special.items()}
    at = given = written = 0
    for at, token in enumerate(turn.ids):
        if at >= given:
            forced = turn.start.forced()
            given = at + len(forced)
        size = 0 if token in vocabulary.eos_ids else len(vocabulary.tokens[token] or markers[token])
        part = min(parts[written : written + size], key=_ORDER.index) if size else _END
        yield part, at < given
        written += size
        turn.start.advance(token)


def _pieces(name: str, arguments: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """The text of a call, piece by piece, with the part that each belongs to."""
    yield from (
        ("<tool_call>", _OTHER),
        ("\n", _FIRST),
        ("<function=", _OTHER),
        (name, _NAME),
        (">\n", _OTHER),
    )
    for parameter, value in arguments.items():
        is_text = isinstance(value, str)
        yield from (("<parameter=", _OTHER), (parameter, _NAME), (">", _OTHER), ("\n", _BREAK))
        yield str(value) if is_text else json.dumps(value, ensure_ascii=False), _VALUE
        yield "\n</parameter>\n", _TEXT_CLOSE if is_text else _OTHER
    yield "</function>\n</tool_call>", _OTHER


if __name__ == "__main__":
    main()
