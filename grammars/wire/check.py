"""What is wrong with a format, as far as that can be seen without a model's text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

from lark.exceptions import LarkError

from larksong.engine.grammar.attributes import Carry
from larksong.engine.grammar.grammar import Rule, Terminal
from larksong.engine.vocabulary import Vocabulary
from larksong.grammars.wire.check_attributes import attribute_flaws
from larksong.grammars.wire.check_reading import reading_flaws
from larksong.grammars.wire.declaration import FormatDeclaration
from larksong.grammars.wire.template import template_rules
from larksong.grammars.wire.wire_format import WireFormat

_KNOWN = frozenset({"SECTION", "CALL", "FUNCTION", "ARGUMENTS", "SEPARATOR"})
_NEEDED = ("calls", "CALL", "FUNCTION", "ARGUMENTS")
_LETTERS = Vocabulary(
    tokens=(*(bytes([byte]) for byte in range(256)), b""),
    special={"<end>": 256},
    eos_ids=frozenset({256}),
    width=257,
)
"""single bytes: every marker is letters"""


def flaw_of(format: WireFormat) -> str:
    """What keeps a format from being used, in a sentence; "" where nothing does."""
    declared = chain(attribute_flaws(format), _marker_flaws(format), _template_flaws(format))
    return next(chain(declared, reading_flaws(format, _LETTERS)), "")


def _marker_flaws(format: FormatDeclaration) -> Iterator[str]:
    for method in ("markers", "open_markers"):
        found: Any = getattr(format, method)(_LETTERS)
        if not isinstance(found, Iterable) or isinstance(found, dict | str):
            yield f"{method} must return a list of terminals"
            return
        for each in found:
            if not isinstance(each, Terminal):
                yield f"{method} must return a list of terminals; it has {each!r}"
                return
            definition: Any = each.definition
            if isinstance(definition, str):
                yield f"{each.name}: write Literal({definition!r})"


def _template_flaws(format: FormatDeclaration) -> Iterator[str]:
    strict = {each.name: each for each in format.markers(_LETTERS)}
    open_ = strict | {each.name: each for each in format.open_markers(_LETTERS)}
    for field, template, own in (
        ("template", format.template, strict),
        ("open_template", format.open_template or format.template, open_),
    ):
        try:
            rules = template_rules(template, format.root)
        except LarkError as error:
            said = " ".join(str(error).split())
            hint = " (a terminal? then it belongs into %declare)" if "used but not defined" in said else ""
            yield f"Lark cannot read its {field}: {said}{hint}"
            return
        yield from _rule_flaws(format, field, rules, own)


def _rule_flaws(
    format: FormatDeclaration, field: str, rules: Iterable[Rule], own: dict[str, Terminal]
) -> Iterator[str]:
    origins = {rule.origin for rule in rules}
    used = {symbol for rule in rules for symbol in rule.expansion} - origins
    missing = sorted(used - own.keys() - _KNOWN)
    if missing:
        yield f"its {field} has {', '.join(missing)}, of which markers says nothing"
    lacking = [name for name in _NEEDED if name not in origins | used]
    if lacking:
        yield f"its {field} lacks {', '.join(lacking)}"
    if "SECTION" in used and not format.section_start:
        yield f"its {field} has SECTION: its class must say section_start, the text of it"
    if format.section_start and "SECTION" not in used:
        yield f"its class says section_start: its {field} must have SECTION"
    if "SEPARATOR" in used and not format.call_separator:
        yield f"its {field} has SEPARATOR: its class must say call_separator, the text of it"
    for rule in rules:
        if {"FUNCTION", "ARGUMENTS"} <= set(rule.expansion):
            at, end = rule.expansion.index("FUNCTION"), rule.expansion.index("ARGUMENTS")
            for name in rule.expansion[at + 1 : end]:
                if name in own and not isinstance(own[name].predicate, Carry):
                    yield f"{name} stands between FUNCTION and ARGUMENTS: make it with carrying()"
