"""What is wrong with a declaration, as far as that can be seen without a model's text."""

from __future__ import annotations

from lark.exceptions import LarkError

from larksong.engine.vocabulary import Vocabulary
from larksong.grammars.wire.declaration import FormatDeclaration
from larksong.grammars.wire.template import template_rules

_NEEDED = ("name", "template", "call_start")
_KNOWN = frozenset({"SECTION", "CALL", "FUNCTION", "ARGUMENTS", "SEPARATOR"})


def flaw_of(format: FormatDeclaration) -> str:
    """What keeps a format from being used, in a sentence; "" where nothing does."""
    for name in _NEEDED:
        if not isinstance(getattr(format, name, None), str):
            return f"its class says no {name}"
    letters = Vocabulary(
        tokens=(*(bytes([byte]) for byte in range(256)), b""),
        special={"<end>": 256},
        eos_ids=frozenset({256}),
        width=257,
    )
    strict = {each.name for each in format.markers(letters)}
    open_ = strict | {each.name for each in format.open_markers(letters)}
    for field, template, own in (
        ("template", format.template, strict),
        ("open_template", format.open_template or format.template, open_),
    ):
        try:
            rules = template_rules(template, format.root)
        except LarkError as error:
            return f"Lark cannot read its {field}: {' '.join(str(error).split())}"
        origins = {rule.origin for rule in rules}
        used = {symbol for rule in rules for symbol in rule.expansion} - origins
        missing = sorted(used - own - _KNOWN)
        if missing:
            return f"its {field} has {', '.join(missing)}, of which markers says nothing"
        if "calls" not in origins or not used.issuperset({"CALL", "FUNCTION", "ARGUMENTS"}):
            return f"its {field} lacks the rule calls, or CALL, FUNCTION or ARGUMENTS"
    return ""
