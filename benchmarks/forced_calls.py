"""Forward passes saved on recorded calls of real clients, as qwen3_coder turns.

The calls and the clients' tools are not part of the repository: `LARKSONG_CASES` names their folder.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from benchmarks.contender import Engine, count_forced
from benchmarks.workload import Workload
from larksong.api.commands.bench.workload import Request
from larksong.grammars import GrammarsError, Tool, wire_format

_FORMAT = "qwen3_coder"


@dataclass(frozen=True)
class ForcedCalls:
    """What an engine forces of the calls that it can read."""

    engine: str
    calls: int
    read: int
    """calls whose tools and order of parameters the engine's grammar covers"""
    tokens: int
    forced: int

    @property
    def share(self) -> float:
        return self.forced / self.tokens if self.tokens else 0.0


def cases_folder() -> Path | None:
    """Where the recorded calls are, or None."""
    known = os.environ.get("LARKSONG_CASES")
    folder = Path(known) if known else Path(__file__).parent.parent.parent / "shared" / "cases"
    return folder if (folder / "client_calls.jsonl").is_file() else None


def measure(engine: Engine, workload: Workload, folder: Path) -> ForcedCalls | None:
    """Feed every call; None for an engine that forces nothing."""
    calls = [json.loads(line) for line in (folder / "client_calls.jsonl").read_text().splitlines()]
    read = tokens = forced = 0
    for call in calls:
        text = wire_format(_FORMAT).render_call(call["name"], call["arguments"])
        ids = [*workload.tokenizer.encode(text, add_special_tokens=False).ids, workload.eos_id]
        tools = _tools(engine, folder, call["client"])
        if call["name"] not in (tool.name for tool in tools):
            continue
        grammar = engine.compile(Request(_FORMAT, tools))
        cursor = engine.begin(grammar)
        if engine.forced(cursor) is None:
            return None
        for token in ids:
            cursor.mask()
            if cursor.advance(token) is False:
                break
        if not cursor.finished():
            continue
        read += 1
        tokens += len(ids)
        forced += count_forced(engine, grammar, ids) or 0
    return ForcedCalls(engine.name, len(calls), read, tokens, forced)


@lru_cache(maxsize=64)
def _tools(engine: Engine, folder: Path, client: str) -> tuple[Tool, ...]:
    """The client's tools whose schemas the engine can enforce."""
    declared = json.loads((folder / "client_tools" / f"{client}.json").read_text())
    known = []
    for function in (tool["function"] for tool in declared):
        tool = Tool(function["name"], function.get("description", ""), function.get("parameters", {}))
        try:
            engine.compile(Request(_FORMAT, (tool,)))
        except (GrammarsError, ValueError, KeyError, RuntimeError):
            continue
        known.append(tool)
    return tuple(known)
