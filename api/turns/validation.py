"""Validation of complete values where a grammar was widened, in a process of its own.

Schema and value come from outside: a regular expression of Python's may run for years and holds the
interpreter's lock meanwhile. The process is ended when its time is over.

    python -m larksong.api.turns.validation < {"schema": …, "texts": ["…"], "keywords": […], "formats": true}
      → the keywords that a value breaks
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import jsonschema
import referencing
from jsonschema.validators import extend, validator_for

TIME_LIMIT = 10.0
"""seconds for all values of one schema, the start of the process among them"""

# A schema that does not name its draft may have keywords of older ones.
_Tolerant = extend(  # type: ignore[no-untyped-call]
    jsonschema.Draft202012Validator,
    {
        keyword: check
        for keyword, check in jsonschema.Draft7Validator.VALIDATORS.items()
        if keyword not in jsonschema.Draft202012Validator.VALIDATORS
    },
)
# Keywords that the path of an error leaves out.
_UNNAMED = {"$ref", "$dynamicRef", "$recursiveRef"}
# Their errors do not say which keyword inside, or in a condition beside them, is the reason.
_SILENT = {
    "not",
    "oneOf",
    "contains",
    "then",
    "else",
    "additionalProperties",
    "unevaluatedProperties",
    "unevaluatedItems",
}
_DRAFTS = (_Tolerant, jsonschema.Draft7Validator, jsonschema.Draft4Validator)


async def broken_keywords(
    schema: Any, texts: Sequence[str], keywords: Collection[str], *, formats: bool
) -> frozenset[str]:
    """Those of `keywords` that a value breaks, or that could not be checked: all, if time runs out."""
    question = {"schema": schema, "texts": texts, "keywords": list(keywords), "formats": formats}
    # -P: what lies in the working directory is nobody's module.
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-P", "-m", "larksong.api.turns.validation"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        async with asyncio.timeout(TIME_LIMIT):
            answer, _ = await process.communicate(json.dumps(question).encode())
    except TimeoutError:
        return frozenset(keywords)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return frozenset(json.loads(answer)) if process.returncode == 0 else frozenset(keywords)


def broken_here(schema: Any, value: Any, keywords: Collection[str], formats: bool) -> set[str]:
    """Those of `keywords` that `value` breaks, wherever in the schema they stand.

    Errors that come from other keywords do not count: the grammar enforces those, and reads some spellings
    (`nullable`) that a validator does not know.
    """
    drafts = (
        [validator_for(schema, _Tolerant)] if isinstance(schema, dict) and "$schema" in schema else _DRAFTS
    )
    accepting = [draft for draft in drafts if draft(draft.META_SCHEMA).is_valid(schema)]
    draft = (accepting or drafts)[0]
    checker = draft.FORMAT_CHECKER if formats else None
    # An empty registry: references to other documents are not fetched.
    validator = draft(schema, format_checker=checker, registry=referencing.Registry())
    return {
        keyword
        for error in _all(validator.iter_errors(value))
        for keyword in keywords
        if _may_come_from(error, keyword)
    }


def _may_come_from(error: jsonschema.ValidationError, keyword: str) -> bool:
    path = error.absolute_schema_path
    return keyword in _UNNAMED or keyword in path or not _SILENT.isdisjoint(path)


def _all(errors: Any) -> Iterator[jsonschema.ValidationError]:
    for error in errors:
        yield error
        yield from _all(error.context)


def _main() -> None:
    question = json.load(sys.stdin)
    broken: set[str] = set()
    for text in question["texts"]:
        broken |= broken_here(question["schema"], json.loads(text), question["keywords"], question["formats"])
    print(json.dumps(sorted(broken)))


if __name__ == "__main__":
    _main()
