"""What the benchmark asks of an engine: the tools of a coding agent, and turns that call two of them.

A turn plans three tasks (`todo_write`: nested objects) and writes one file (`write`: a long string); for a
response schema there is a review of the same file. Turn 0 is always the same one. Every other turn has
another file, passages of Python's own standard library, and other tasks, so a long run meets no turn twice.
"""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import zip_longest
from pathlib import Path
from typing import Any

from larksong.grammars import Tool, wire_format

Schema = dict[str, Any]

RESPONSE_FORMAT = "response_format"


def _string(*values: str) -> Schema:
    return {"type": "string", "enum": list(values)} if values else {"type": "string"}


def _nullable(kind: str) -> Schema:
    return {"anyOf": [{"type": kind}, {"type": "null"}]}


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _object(properties: Schema, required: str) -> Schema:
    """A closed object; `required` names its required members, separated by blanks."""
    return {
        "type": "object",
        "properties": properties,
        "required": required.split(),
        "additionalProperties": False,
    }


_BOOLEAN: Schema = {"type": "boolean"}
_INTEGER: Schema = {"type": "integer"}
_NUMBER: Schema = {"type": "number"}

_TASK = _object(
    {
        "id": _string(),
        "content": _string(),
        "status": _string("pending", "in_progress", "completed", "cancelled"),
        "priority": _string("high", "medium", "low"),
        "tags": _list(_string()),
        "done": _BOOLEAN,
        "estimate_minutes": _nullable("integer"),
    },
    "id content status priority",
)
_EDIT = _object(
    {"old_string": _string(), "new_string": _string(), "replace_all": _BOOLEAN}, "old_string new_string"
)

TOOLS: tuple[Tool, ...] = (
    Tool(
        "read",
        "Read a file",
        _object(
            {"path": _string(), "offset": _nullable("integer"), "limit": _nullable("integer")},
            "path",
        ),
    ),
    Tool(
        "write",
        "Write a file",
        _object(
            {"path": _string(), "content": _string(), "mode": _string("create", "overwrite", "append")},
            "path content",
        ),
    ),
    Tool(
        "edit",
        "Edit a file",
        _object(
            {
                "path": _string(),
                "old_string": _string(),
                "new_string": _string(),
                "replace_all": _BOOLEAN,
            },
            "path old_string new_string",
        ),
    ),
    Tool(
        "multi_edit",
        "Make several edits in one file",
        _object({"path": _string(), "edits": _list(_EDIT)}, "path edits"),
    ),
    Tool(
        "bash",
        "Run a shell command",
        _object(
            {
                "command": _string(),
                "description": _string(),
                "timeout": _INTEGER,
                "run_in_background": _BOOLEAN,
                "cwd": _nullable("string"),
            },
            "command",
        ),
    ),
    Tool(
        "grep",
        "Search file contents",
        _object(
            {
                "pattern": _string(),
                "path": _nullable("string"),
                "glob": _nullable("string"),
                "output_mode": _string("content", "files_with_matches", "count"),
                "ignore_case": _BOOLEAN,
                "context": _INTEGER,
                "head_limit": _nullable("integer"),
                "multiline": _BOOLEAN,
            },
            "pattern",
        ),
    ),
    Tool(
        "glob",
        "Find files by name",
        _object({"pattern": _string(), "path": _nullable("string")}, "pattern"),
    ),
    Tool(
        "todo_write",
        "Write the plan",
        _object({"todos": _list(_TASK), "merge": _BOOLEAN}, "todos"),
    ),
    Tool(
        "web_fetch",
        "Fetch a page",
        _object(
            {
                "url": _string(),
                "prompt": _string(),
                "max_kilobytes": _NUMBER,
                "follow_redirects": _BOOLEAN,
            },
            "url prompt",
        ),
    ),
    Tool(
        "task",
        "Hand work to a second agent",
        _object(
            {
                "description": _string(),
                "prompt": _string(),
                "subagent_type": _string("general", "explore", "plan", "review"),
                "files": _list(_string()),
                "budget_usd": _NUMBER,
            },
            "description prompt subagent_type",
        ),
    ),
)

_FINDING = _object(
    {
        "rule": _string(),
        "message": _string(),
        "line": _INTEGER,
        "fixable": _BOOLEAN,
        "severity": _string("info", "warning", "error"),
        "suggestion": _nullable("string"),
    },
    "rule message line fixable severity suggestion",
)
REVIEW: Schema = _object(
    {
        "title": _string(),
        "severity": _string("info", "warning", "error"),
        "score": _NUMBER,
        "file": _string(),
        "lines": _list(_INTEGER),
        "reviewer": _object({"name": _string(), "email": _nullable("string")}, "name email"),
        "findings": _list(_FINDING),
        "patched_source": _string(),
    },
    "title severity score file lines reviewer findings patched_source",
)


def tools(count: int) -> tuple[Tool, ...]:
    """The ten tools, and beside them as many others of the same shapes as `count` needs.

    The others are named after a service and have a member of its own, as tools of many MCP servers do.
    """
    found = list(TOOLS)
    for number in range(count - len(found)):
        like = TOOLS[number % len(TOOLS)]
        service = f"service{number // len(TOOLS)}"
        parameters = _with_member(like.parameters, f"{service}_scope", _string())
        found.append(Tool(f"{service}_{like.name}", like.description, parameters))
    return tuple(found[:count])


def changed_tools(known: tuple[Tool, ...], number: int) -> tuple[Tool, ...]:
    """Another request's tools: both called tools and the task have a member more, `glob` has another name."""
    changed = []
    for tool in known:
        name, parameters = tool.name, tool.parameters
        if name in ("todo_write", "write"):
            parameters = _with_member(parameters, f"extra_{number}", _nullable("integer"))
        if name == "todo_write":
            task = _with_member(parameters["properties"]["todos"]["items"], *_extra(number))
            parameters = {
                **parameters,
                "properties": {**parameters["properties"], "todos": _list(task)},
            }
        if name == "glob":
            name = f"glob_v{number}"
        changed.append(Tool(name, tool.description, parameters))
    return tuple(changed)


def changed_review(number: int) -> Schema:
    """Another request's response schema: the review and its findings have one more optional member."""
    finding = _with_member(_FINDING, *_extra(number))
    review = _with_member(REVIEW, *_extra(number))
    return {**review, "properties": {**review["properties"], "findings": _list(finding)}}


@dataclass(frozen=True)
class Request:
    """What is asked of an engine: calls of `tools` in a wire format, or JSON that fits `schema`."""

    format: str
    """a wire format's name, or RESPONSE_FORMAT"""
    tools: tuple[Tool, ...] = ()
    schema: Schema | None = None


def request(format: str, count: int, changed: int | None = None) -> Request:
    """The request of this format with `count` tools; `changed`: the number of a request never seen before."""
    if format == RESPONSE_FORMAT:
        return Request(format, schema=REVIEW if changed is None else changed_review(changed))
    known = tools(count)
    return Request(format, known if changed is None else changed_tools(known, changed))


def _extra(number: int) -> tuple[str, Schema]:
    return f"extra_{number}", _nullable("integer")


def _with_member(schema: Mapping[str, Any], name: str, member: Schema) -> Schema:
    return {**schema, "properties": {**schema["properties"], name: member}}


@dataclass(frozen=True)
class SampleTurn:
    """What a model writes: calls as (name, arguments), or the review in their place."""

    calls: tuple[tuple[str, dict[str, Any]], ...]
    review: dict[str, Any]

    def text(self, format: str) -> str:
        """The turn as a model family writes it."""
        if format == RESPONSE_FORMAT:
            return json.dumps(self.review, ensure_ascii=False)
        return wire_format(format).render_calls(self.calls)


@lru_cache(maxsize=256)
def turn(number: int) -> SampleTurn:
    """The turn of this number: 0 is the standard one, each other has values of its own."""
    return _STANDARD if number == 0 else _other_turn(number)


def _standard() -> SampleTurn:
    path = "services/ingest/retry.py"
    tasks: list[dict[str, Any]] = [
        {
            "id": "1",
            "content": "Find every caller of fetch_batch() and note the error paths",
            "status": "completed",
            "priority": "high",
            "tags": ["search"],
            "done": True,
            "estimate_minutes": 15,
        },
        {
            "id": "2",
            "content": "Add a retry policy with jitter to ingest/retry.py",
            "status": "in_progress",
            "priority": "high",
            "tags": ["code", "ingest"],
            "done": False,
            "estimate_minutes": 40,
        },
        {
            "id": "3",
            "content": "Write tests for timeouts",
            "status": "pending",
            "priority": "medium",
            "estimate_minutes": None,
        },
    ]
    review = {
        "title": "Retry helper review",
        "severity": "warning",
        "score": 7.5,
        "file": path,
        "lines": [12, 24, 31],
        "reviewer": {"name": "reviewer-1", "email": None},
        "findings": [
            {
                "rule": "E501",
                "message": "line too long",
                "line": 31,
                "fixable": True,
                "severity": "info",
                "suggestion": "wrap the call",
            },
            {
                "rule": "B017",
                "message": "broad assert",
                "line": 44,
                "fixable": False,
                "severity": "warning",
                "suggestion": None,
            },
        ],
        "patched_source": _STANDARD_FILE,
    }
    return _turn(tasks, path, _STANDARD_FILE, "create", review)


def _turn(
    tasks: list[dict[str, Any]], path: str, content: str, mode: str, review: dict[str, Any]
) -> SampleTurn:
    return SampleTurn(
        calls=(
            ("todo_write", {"todos": tasks, "merge": False}),
            ("write", {"path": path, "content": content, "mode": mode}),
        ),
        review=review,
    )


def _other_turn(number: int) -> SampleTurn:
    passages = _passages()
    module, content = passages[number % len(passages)]
    sentences = [_SENTENCES[(3 * number + offset) % len(_SENTENCES)] for offset in range(3)]
    area = _AREAS[number % len(_AREAS)]
    path = f"{area}/{module}.py"
    tasks: list[dict[str, Any]] = [
        {
            "id": str(3 * number + 1),
            "content": sentences[0].format(module),
            "status": "completed",
            "priority": ("high", "medium")[number % 2],
            "tags": [area.rpartition("/")[2]],
            "done": True,
            "estimate_minutes": 5 + 7 * number % 60,
        },
        {
            "id": str(3 * number + 2),
            "content": sentences[1].format(module),
            "status": ("in_progress", "cancelled")[number % 2],
            "priority": ("medium", "low")[number % 2],
            "tags": ["code", module],
            "done": False,
            "estimate_minutes": 10 + 11 * number % 90,
        },
        {
            "id": str(3 * number + 3),
            "content": sentences[2].format(module),
            "status": "pending",
            "priority": ("low", "high")[number % 2],
            "estimate_minutes": None,
        },
    ]
    first, second, third = (13 + number * step % 200 for step in (3, 17, 29))
    review = {
        "title": sentences[0].format(module),
        "severity": ("info", "error")[number % 2],
        "score": number * 37 % 100 / 10,
        "file": path,
        "lines": [first, second, third],
        "reviewer": {"name": f"reviewer-{number}", "email": f"{module}@example.org"},
        "findings": [
            {
                "rule": f"E{first}",
                "message": sentences[1].format(module),
                "line": first,
                "fixable": bool(number % 2),
                "severity": "error",
                "suggestion": None,
            },
            {
                "rule": f"W{second}",
                "message": "unused name",
                "line": second,
                "fixable": True,
                "severity": "info",
                "suggestion": f"delete line {second}",
            },
        ],
        "patched_source": content,
    }
    return _turn(tasks, path, content, ("create", "overwrite", "append")[number % 3], review)


@lru_cache(maxsize=1)
def _passages() -> tuple[tuple[str, str], ...]:
    """(module, passage) pairs without overlap: first one of every module, then the second ones, …"""
    rounds = zip_longest(*(_passages_of(module) for module in _MODULES))
    return tuple(passage for found in rounds for passage in found if passage is not None)


def _passages_of(module: str) -> list[tuple[str, str]]:
    """Stretches of a module that begin with a definition and have `_PASSAGE_CHARACTERS` or a bit more.

    They lie in its last two thirds: before that is much licence and documentation.
    """
    spec = importlib.util.find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    lines = Path(spec.origin).read_text(encoding="utf-8").splitlines(keepends=True)
    passages: list[tuple[str, str]] = []
    passage = ""
    for line in lines[len(lines) // 3 :]:
        if passage or re.match(r"\s*(def|class|async def) \w", line):
            passage += line
        if len(passage) >= _PASSAGE_CHARACTERS:
            passages.append((module, passage))
            passage = ""
    return passages


_PASSAGE_CHARACTERS = 1_600  # the standard turn's file has as many tokens
_AREAS = ("services/ingest", "lib/core", "tools", "app/storage", "workers", "src/api", "packages/text")
_MODULES = (
    *("argparse", "bisect", "calendar", "configparser", "copy", "csv", "difflib", "fileinput", "fractions"),
    *("functools", "gettext", "glob", "heapq", "locale", "mailbox", "netrc", "pprint", "queue", "random"),
    *("sched", "selectors", "shelve", "shlex", "shutil", "smtplib", "socketserver", "statistics", "string"),
    *("tarfile", "tempfile", "textwrap", "threading", "timeit", "tokenize", "trace", "uuid", "zipfile"),
)
_SENTENCES = (
    "Read {} and list what its callers rely on",
    "Split the long function in {} at its two loops",
    "Add a test for the empty input of {}",
    "Look up why the nightly job failed on Tuesday",
    "Replace the hand-made cache in {} by functools.lru_cache",
    "Write a short note for the changelog",
    "Measure {} on the large sample, before and after",
    "Remove the flag that nobody sets any more",
    "Check the error messages of {} against the guide",
    "Make the paths in {} work on Windows too",
    "Rename `tmp` in {} to what it holds",
    "Ask whether the old format must still be read",
    "Find the place where {} swallows a KeyboardInterrupt",
    "Update the pinned versions and run everything again",
    "Type the public functions of {}",
    "Close the file handles that {} leaves open",
    "Document the order in which hooks run",
    "Give {} a timeout instead of a sleep",
    "Collect the slowest ten tests and halve the first",
    "Move the constants of {} beside their only user",
    "Turn the warning in {} into an error behind a setting",
    "Draw the states of the upload as a table",
    "Delete the second copy of the parser in {}",
    "Prepare the release branch",
)
_STANDARD_FILE = '''\
"""Retry helpers for the ingest service."""
from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass, field
from typing import Awaitable, Callable, TypeVar

T = TypeVar("T")


@dataclass
class RetryPolicy:
    attempts: int = 5
    base_delay: float = 0.25  # seconds
    max_delay: float = 8.0
    jitter: float = 0.1
    retry_on: tuple[type[BaseException], ...] = field(default=(OSError, TimeoutError))

    def delay(self, attempt: int) -> float:
        raw = min(self.max_delay, self.base_delay * (2 ** attempt))
        return raw * (1 + random.uniform(-self.jitter, self.jitter))


async def retry(fn: Callable[[], Awaitable[T]], policy: RetryPolicy | None = None) -> T:
    policy = policy or RetryPolicy()
    last: BaseException | None = None
    for attempt in range(policy.attempts):
        try:
            return await fn()
        except policy.retry_on as exc:
            last = exc
            if attempt + 1 == policy.attempts:
                break
            print(f"attempt {attempt + 1} failed: {exc!r}\\n", flush=True)
            await asyncio.sleep(policy.delay(attempt))
    assert last is not None
    raise RuntimeError(f"gave up after {policy.attempts} attempts") from last


def main() -> None:
    started = time.monotonic()
    try:
        asyncio.run(retry(lambda: asyncio.sleep(0.01, result={"ok": [1, 2, 3]})))
    finally:
        print("took", round(time.monotonic() - started, 3), "s — done ✓")


if __name__ == "__main__":
    main()
'''
_STANDARD = _standard()
