"""The rules of parameters that nobody constrained, each of which is an element."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

from larksong.engine.automata.languages import Language
from larksong.engine.grammar.attributes import Key, Member
from larksong.engine.grammar.grammar import Grammar
from larksong.engine.grammar.terminals import Pattern, Role, Special
from larksong.engine.vocabulary import Vocabulary
from larksong.grammars.json.members import Shapes
from larksong.grammars.json.open_json import OpenJson
from larksong.grammars.json.rules import ANY_SCHEMA
from larksong.grammars.schema import Schema
from larksong.grammars.schema.shapes import ArrayShape, EnumShape, NumberShape, ObjectShape
from larksong.grammars.wire.element_rules import ElementRules, objects
from larksong.grammars.wire.elements import Elements
from larksong.grammars.wire.other_names import ended_by

OTHER_NAME = r"[^\s\x00-\x1f\x7f<>\"=]{1,128}"
_ALL_KINDS = ("object", "array", "string", "number", "boolean", "null", "text")
_KINDS: dict[type, str] = {
    str: "text", int: "number", float: "number", bool: "boolean", type(None): "null",
}  # fmt: skip


def _kinds(shapes: Shapes) -> tuple[str, ...]:
    """The kinds of JSON value that a union has, and raw text at last."""
    found: dict[str, None] = {}
    for shape in shapes:
        match shape:
            case EnumShape(texts):
                found |= dict.fromkeys(_KINDS[type(json.loads(text))] for text in texts)
            case NumberShape():
                found["number"] = None
            case ArrayShape():
                found["array"] = None
            case ObjectShape():
                found["object"] = None
    return (*(kind for kind in found if kind != "text"), "text")


class OpenElementRules:
    """Any parameters, in any number; declared ones are read by their types where their text fits.

    A text that is nothing else is a raw string, whatever the schema says. `parameters`: those of a declared
    tool, else None.
    """

    def __init__(self, of: Elements, vocabulary: Vocabulary | None, parameters: Schema | None) -> None:
        self._elements = of
        self._declared = objects(parameters) if parameters is not None else ()
        self._rules = ElementRules(of, vocabulary, parameters or ANY_SCHEMA)
        self._builder = self._rules.builder
        self._json = OpenJson(self._builder)
        self._closers = self._rules.markup()
        self._alternatives: list[tuple[str, ...]] = []
        self._unclosed: list[tuple[str, ...]] = []

    def grammar(self) -> Grammar:
        builder = self._builder
        self._add_declared()
        self._add_others()
        builder.rule("start", ("parameters", "FUNCTION_CLOSE"))
        if self._unclosed:
            # Models forget to close a last value; where it is JSON, its end is certain.
            late = Pattern(r"\n?" + re.escape(self._elements.function_close[0]))
            closed = self._rules.terminal("LATE_FUNCTION_CLOSE", late, Role.CALL_CLOSE)
            builder.rule("start", ("parameters", "unclosed", closed))
            builder.rule("unclosed", *dict.fromkeys(self._unclosed))
        builder.rule("parameters", (), ("parameters", "parameter"))
        builder.rule("parameter", *dict.fromkeys(self._alternatives))
        return builder.grammar("any parameters")

    def _typed(self) -> dict[str, Shapes]:
        """The declared names whose types tell how a value is read."""
        found: dict[str, Shapes] = {}
        if not self._elements.tells_json:
            for shape in self._declared:
                for name, node in shape.properties:
                    found[name] = found.get(name, ()) + self._builder.schema.shapes_of(node)
        return found

    def _add_declared(self) -> None:
        by_kinds: dict[tuple[str, ...], list[tuple[str, Member]]] = {}
        for name, shapes in self._typed().items():
            by_kinds.setdefault(_kinds(shapes), []).append((name, Member(name, 0)))
        for kinds, members in by_kinds.items():
            self._add(self._rules.openers("_".join(kinds), members, True, Key()), kinds)

    def _add_others(self) -> None:
        """Names that are not declared; or all of them, where it is not the name that tells the type."""
        typed = self._typed()
        known = "|".join(re.escape(name) for name in typed)
        other = ended_by(OTHER_NAME, ("".join(self._elements.name_suffix(text)) for text in (True, False)))
        # Where names are told apart from values by quotes, a declared one may look like no other.
        declared = {name for shape in self._declared for name, _ in shape.properties}
        odd = sorted(name for name in declared - set(typed) if not re.fullmatch(other, name))
        names = "|".join([other, *map(re.escape, odd)])
        guard = f"(?!(?:{known})$)" if known else ""
        name = self._rules.terminal("OTHER_KEY", Pattern(f"{guard}(?:{names})"), Role.NAME)
        if self._elements.tells_json:
            self._add(self._openers(name, is_text=True), ("text",))
        self._add(self._openers(name, is_text=False), _ALL_KINDS)

    def _openers(self, name: str, *, is_text: bool) -> list[str]:
        """The terminals of a name that is not declared, up to its value."""
        after = self._rules.merged(self._elements.name_suffix(is_text))
        roles = [Role.MARKUP] * (len(after) - 1) + [Role.PARAMETER_OPEN]
        terminals = (
            self._rules.terminal("AFTER_KEY", each, role) for each, role in zip(after, roles, strict=True)
        )
        return [name, *terminals]

    def _add(self, openers: Sequence[str], kinds: Sequence[str]) -> None:
        for kind in kinds:
            for symbol in self._symbols(kind):
                opened = ("PARAMETER", *openers, *((symbol,) if symbol else ()))
                self._alternatives.append((*opened, *self._closers))
                if kind != "text" and not isinstance(self._rules.function_close, Special):
                    self._unclosed.append(opened)

    def _symbols(self, kind: str) -> Iterator[str]:
        if kind == "text":
            yield from (value.symbol for value in self._rules.text(Language(), "", "VALUE", None))
        elif kind == "boolean":
            yield self._rules.spelled("PARAMETER_BOOLEAN", ("true", "false"))
        elif kind == "null":
            yield self._rules.spelled("PARAMETER_NULL", ("null",))
        else:
            yield self._json.value(kind)
