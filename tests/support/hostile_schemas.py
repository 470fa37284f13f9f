"""Schemas that ask for too much, and what it costs a process of its own to read each of them.

python -m tests.support.hostile_schemas
"""

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from larksong.grammars.errors import InvalidSchema, Unenforceable
from larksong.grammars.schema import Options, read_schema


def _nested(depth: int, keyword: str) -> Any:
    schema_: Any = {"type": "integer"}
    for _ in range(depth):
        schema_ = {"anyOf": [schema_]} if keyword == "anyOf" else {keyword: schema_}
    return schema_


HOSTILE: dict[str, Callable[[], Any]] = {
    "deep items": lambda: _nested(100_000, "items"),
    "deep anyOf": lambda: _nested(100_000, "anyOf"),
    "five megabytes": lambda: {
        "properties": {f"p{i}": {"properties": {f"q{i}_{j}": {"minLength": i} for j in range(20)}} for i in range(6000)}
    },
    "a million values": lambda: {"enum": [str(i) for i in range(1_000_000)]},
    "a catastrophic regex": lambda: {"type": "string", "pattern": "^(a+)+$"},
    "repeated repetitions": lambda: {"type": "string", "pattern": "^(.{0,1000}){0,1000}$"},
    "an exponential automaton": lambda: {"type": "string", "pattern": "(a|b)*a(a|b){18}"},
    "patterns to multiply": lambda: {"allOf": [{"pattern": f"(a|b)*a(a|b){{{i}}}c"} for i in range(5, 25)], "type": "string"},
    "alternatives to multiply": lambda: {"allOf": [{"anyOf": [{"required": [f"a{i}{j}"]} for j in range(4)]} for i in range(20)]},
    "endless": lambda: {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"allOf": [{"$ref": "#/$defs/a"}]}}},
    "a long chain": lambda: {
        "$ref": "#/$defs/d0",
        "$defs": {f"d{i}": {"properties": {"n": {"$ref": f"#/$defs/d{i + 1}"}}, "required": ["n"]} for i in range(2000)} | {"d2000": {}},
    },
    "itself": lambda: {"$ref": "#"},
    "a long expression": lambda: {"type": "string", "pattern": "a" * 1_000_000},
    "many long expressions": lambda: {"properties": {f"p{i}": {"pattern": f"^{'(ab|c)' * 3000}{i}$"} for i in range(50)}},
    "a million names in required": lambda: {"required": [f"p{i}" for i in range(1_000_000)]},
    "a million branches": lambda: {"anyOf": [{"const": i} for i in range(1_000_000)]},
    "branches to tell apart": lambda: {"oneOf": [{"required": [f"a{i}"]} for i in range(300)]},
    "a long tuple": lambda: {"type": "array", "prefixItems": [{"const": i} for i in range(5000)]},
    "a long constant": lambda: {"const": "x" * 5_000_000},
    "a long name": lambda: {"properties": {"x" * 5_000_000: {}}},
    "a deep constant": lambda: {"const": json.loads("[" * 900 + "]" * 900)},
    "a long pointer": lambda: {"$ref": "#" + "/a" * 1_000_000},
    "a long string without some": lambda: {"type": "string", "minLength": 10**6, "not": {"enum": ["a"]}},
    "remainders to multiply": lambda: {"type": "number", "allOf": [{"multipleOf": p} for p in (7, 11, 13, 17, 19, 23)]},
    "a billion items": lambda: {"type": "array", "minItems": 10**9},
}  # fmt: skip


@dataclass(frozen=True)
class Cost:
    """Of reading a schema, exactly and widened, the dearer one."""

    seconds: float
    said: int
    """characters of the refusal, 0 without one"""
    megabytes: float
    """what the most memory that the process has had grew by"""


def _read(hostile: Any) -> Cost:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seconds, said = [], [0]
    for options in (Options(), Options(widen=True)):
        begun = time.thread_time()
        try:
            read_schema(hostile, options)
        except (InvalidSchema, Unenforceable) as error:
            said.append(len(str(error)))
        seconds.append(time.thread_time() - begun)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return Cost(max(seconds), max(said), grown / (1 << 20 if sys.platform == "darwin" else 1 << 10))


def _in_a_fork(make: Callable[[], Any]) -> dict[str, float]:
    """The cost in a process of its own, none where it died."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, json.dumps(asdict(_read(make()))).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return json.loads(text or "{}")


def costs() -> dict[str, Cost]:
    """What each of HOSTILE costs; those at which the process died are missing."""
    program = [sys.executable, "-m", "tests.support.hostile_schemas"]
    done = subprocess.run(program, capture_output=True, check=True, timeout=300)
    return {name: Cost(**cost) for name, cost in json.loads(done.stdout).items() if cost}


if __name__ == "__main__":
    print(json.dumps({name: _in_a_fork(make) for name, make in HOSTILE.items()}))
