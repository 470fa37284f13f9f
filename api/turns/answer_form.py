"""What an answer that is no call must look like: JSON of a schema, or text of a form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from larksong.engine.grammar.grammar import Grammar
from larksong.engine.vocabulary import Vocabulary
from larksong.grammars import Options
from larksong.grammars.answers.constraints import choice_grammar, lark_grammar, regex_grammar
from larksong.grammars.answers.response_format import response_grammar


@dataclass(frozen=True)
class AnswerSchema:
    """The answer is one JSON text of `schema`. `field`: where the request says so."""

    schema: Mapping[str, Any] | bool
    options: Options
    field: str = "response_format"

    def grammar(self, vocabulary: Vocabulary) -> Grammar:
        """The grammar of a turn that is this answer."""
        return response_grammar(self.schema, vocabulary, self.options)


@dataclass(frozen=True)
class AnswerText:
    """The answer follows a regular expression, is one of some texts, or follows a Lark grammar."""

    kind: Literal["regex", "choice", "grammar"]
    value: str | tuple[str, ...]
    field: str

    def grammar(self, vocabulary: Vocabulary) -> Grammar:
        """The grammar of a turn that is this answer. Raises InvalidConstraint."""
        if isinstance(self.value, tuple):
            return choice_grammar(self.value, vocabulary)
        if self.kind == "regex":
            return regex_grammar(self.value, vocabulary)
        return lark_grammar(self.value, vocabulary)


AnswerForm = AnswerSchema | AnswerText
