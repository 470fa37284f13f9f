"""Which keyword is to blame for a refusal, and how that is said."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from itertools import islice
from typing import Any

from larksong.grammars.explain.edits import Edit, at, edits
from larksong.grammars.explain.progress import Spot
from larksong.grammars.explain.scan import Step
from larksong.grammars.explain.subschemas import Subschema
from larksong.grammars.schema.references import escape
from larksong.grammars.tools import Tool

_MAX_EDITS = 200
_MAX_TOGETHER = 60
_SHOWN = 200


class Answer(Enum):
    """Whether a text goes on by another schema."""

    NO = 0
    PERHAPS = 1
    """it does, but there another keyword could no longer be enforced either"""
    YES = 2


@dataclass(frozen=True)
class Wanted:
    """What the request wanted in the place of a refused text.

    `pointer`: a JSON pointer to the keyword in the tool's parameters, or in the answer's schema where `tool`
    is None; where the keyword is implied and not written, to the schema that implies it. What the request
    itself wanted (`tool_choice`, the tools' names) has a pointer into the request, and `in_request` is true.
    """

    tool: str | None
    pointer: str
    keyword: str
    value: Any
    message: str
    in_request: bool = False


def edits_of(subschemas: list[Subschema], tool: Tool | None, name: str | None) -> list[Edit]:
    """The keywords of some subschemas, in the order in which they are asked about.

    `name`: the member's name that is being read. A tool's own parameters are closed to undeclared names.
    """
    found = [
        edit
        for subschema in subschemas
        for edit in edits(subschema, name, closed=tool is not None and not subschema.pointer)
    ]
    return sorted(found, key=lambda edit: edit.rank)


def blamed(
    near: list[list[Edit]], every: list[Edit], goes_on: Callable[[Iterable[Edit]], tuple[Answer, int]]
) -> list[Edit]:
    """One keyword without which the text goes on; else a few that do it together, of one value if so.

    Of several keywords of one value it is that without which the text goes furthest: 85 begins as 8 does,
    which a minimum of 30 refuses, too. Alternatives may each have it: then it is that of all through which
    the text could go on. `goes_on` tells besides how far.
    """
    # Joining keywords and types come last, those of the value itself before those of what it stands in.
    deep = [(depth if edit.rank else -1, edit) for depth, level in enumerate(near) for edit in level]
    single = [edit for _, edit in sorted(deep, key=lambda each: (each[0], each[1].rank))]
    perhaps: list[Edit] = []
    for edit in islice(dict.fromkeys([*single, *every]), _MAX_EDITS):
        if edit.rank and perhaps:
            break
        answer, _ = goes_on((edit,))
        if answer is Answer.YES:
            level = next((level for level in near if edit in level), [edit])
            tried = {each: goes_on((each,)) for each in level if each.rank == edit.rank}
            far = {each: further for each, (answer, further) in tried.items() if answer is Answer.YES}
            best = max(far, key=lambda each: far[each])
            return [best, *(each for each in far if each.keyword == best.keyword and each != best)]
        if answer is Answer.PERHAPS:
            perhaps.append(edit)
    if perhaps:
        return perhaps[:1]
    for together in (*near, single[:_MAX_TOGETHER]):
        if len(together) > 1 and goes_on(together)[0] is not Answer.NO:
            left = list(together)
            for edit in together[::-1]:
                fewer = [each for each in left if each is not edit]
                if fewer and goes_on(fewer)[0] is not Answer.NO:
                    left = fewer
            return left
    return []


def refused_member(tool: Tool | None, subschemas: list[Subschema], spot: Spot) -> Wanted | None:
    """The name that is being read, if its object has it already or must not have it."""
    if spot.name is None:
        return None
    declared = {
        name: (f"{subschema.pointer}/properties/{escape(name)}", schema)
        for subschema in subschemas
        for name, schema in subschema.schema.get("properties", {}).items()
    }
    fitting = [
        name for name in declared if name == spot.name or (not spot.is_whole and name.startswith(spot.name))
    ]
    if any(name not in spot.names and declared[name][1] is not False for name in fitting):
        return None
    for name in fitting:
        pointer, schema = declared[name]
        if name in spot.names:
            message = f"{name} is there already, and a member may come once"
        else:
            message = f"{name} may not come: its schema is false"
        return Wanted(tool.name if tool else None, pointer, "properties", schema, message)
    return None


def wanted_by(tool: Tool | None, schema: Any, edit: Edit, spot: Spot, outermost: list[Subschema]) -> Wanted:
    """What a keyword that is to blame wanted. `outermost`: the subschemas of the whole value."""
    value = False if edit.implied else at(schema, edit.keyword_pointer)
    message = f"{edit.keyword} is {shown(value)}"
    if edit.keyword == "required" and isinstance(value, list):
        missing = [name for name in value if name not in spot.names]
        message = f"missing: {', '.join(missing)}" if missing else message
    elif edit.implied:
        message = _undeclared(outermost, (*spot.path, spot.name)[0])
    return Wanted(tool.name if tool else None, edit.keyword_pointer, edit.keyword, value, message)


def _undeclared(subschemas: list[Subschema], name: Step | None) -> str:
    names = list(
        dict.fromkeys(each for subschema in subschemas for each in subschema.schema.get("properties", ()))
    )
    if not names:
        return "no members are declared, and none may come"
    if name in names:
        return f"{name} is declared only by an alternative that what came before rules out"
    return f"these members are declared, and no others may come: {', '.join(names)}"


def shown(value: Any) -> str:
    """A value as JSON, cut where it is long."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
