"""`python -m benchmarks.reading`: what a byte costs to read by the open builds, beside no mask and no model.

A turn of each kind, in pieces of 1,000 bytes: one long string value, objects in an array, and visible text.
"""

from __future__ import annotations

import argparse
from time import process_time
from typing import Any

from rich.console import Console
from rich.table import Table

from larksong.api.offline.parse import TurnParser
from larksong.grammars import Tool, format_names, wire_format

SIZES = (1_000, 10_000, 100_000, 1_000_000)
KINDS = ("text", "objects", "prose")
_LINE = "    return f(x)[0]  # é <b>\n"
_PROSE = "Some words, which <b>are</b> {no} call.\n"
_ROW: dict[str, Any] = {"id": 12, "name": "ab", "ok": True, "x": [1.5, None]}
_PIECE = 1_000
_TOOL = Tool("write", "", {"properties": {"content": {"type": "string"}, "rows": {"type": "array"}}})


def seconds_a_byte(format: str, kind: str, size: int) -> float:
    """Processor time for each byte of a turn of about `size` bytes, from a new parser to the last delta."""
    wire = wire_format(format)
    if kind == "text":
        written = wire.render_call(_TOOL.name, {"content": _LINE * (size // len(_LINE.encode()))})
    elif kind == "objects":
        written = wire.render_call(_TOOL.name, {"rows": [{**_ROW, "id": n} for n in range(size // 60)]})
    else:
        written = _PROSE * (size // len(_PROSE))
    data = written.encode()
    start = process_time()
    parser = TurnParser(wire, [_TOOL])
    for at in range(0, len(data), _PIECE):
        parser.feed(data[at : at + _PIECE])
    parser.finish()
    return (process_time() - start) / len(data)


def main() -> None:
    arguments = argparse.ArgumentParser(prog="python -m benchmarks.reading", description=__doc__)
    arguments.add_argument("--formats", nargs="+", choices=format_names(), default=format_names())
    table = Table(title="µs a byte", title_justify="left")
    for name in ("format", "turn", *(f"{size:,} bytes" for size in SIZES)):
        table.add_column(name, justify="left" if name in ("format", "turn") else "right")
    for format in arguments.parse_args().formats:
        for kind in KINDS:
            found = [
                min(seconds_a_byte(format, kind, size) for _ in range(1 + 30_000 // size)) for size in SIZES
            ]
            table.add_row(format, kind, *(f"{each * 1e6:.2f}" for each in found))
    Console().print(table)


if __name__ == "__main__":
    main()
