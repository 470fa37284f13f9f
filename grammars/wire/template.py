"""The rules of a Lark template, read by Lark itself."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from lark import Lark
from lark.lexer import Lexer

from larksong.engine.grammar.grammar import Rule


class _NoLexer(Lexer):
    def __init__(self, conf: Any) -> None:
        pass

    def lex(self, lexer_state: Any, parser_state: Any) -> Any:
        return iter(())


@lru_cache
def template_rules(template: str, root: str = "calls") -> tuple[Rule, ...]:
    """The rules of a template from its rule `root` on; its terminals are declared."""
    lark = Lark(template, parser="lalr", lexer=_NoLexer, start=root, maybe_placeholders=False)
    return tuple(
        Rule(rule.origin.name, tuple(symbol.name for symbol in rule.expansion)) for rule in lark.rules
    )
