"""A wire format as its users see it: the grammars of turns in the format that an author declared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from larksong.engine.grammar.grammar import Grammar
from larksong.engine.vocabulary import Vocabulary
from larksong.grammars.errors import DuplicateTool, GrammarsError, NoTools
from larksong.grammars.schema import Widened
from larksong.grammars.tools import CallPolicy, Tool
from larksong.grammars.wire.declaration import FormatDeclaration
from larksong.grammars.wire.turn_grammars import ToolKey, parameters_of, tool_key, turn_grammars
from larksong.grammars.wire.turn_rules import TurnRules


class WireFormat(FormatDeclaration):
    """How a model family writes tool calls, and the grammars of its turns.

    A grammar is the same object for the same request, as long as it is kept: the engine compares by identity.
    `in_reasoning`: the prompt ends inside reasoning (see `ends_in_reasoning`).
    """

    turn_rules: ClassVar[type[TurnRules]] = TurnRules
    """what stands around the calls; a class of their own for formats that have more than text there"""

    def grammar(
        self,
        tools: Sequence[Tool],
        policy: CallPolicy,
        vocabulary: Vocabulary,
        *,
        in_reasoning: bool = False,
    ) -> Grammar:
        """The strict grammar of a turn with these tools. Raises `GrammarsError`."""
        names = [tool.name for tool in tools]
        for name in names:
            if names.count(name) > 1:
                raise DuplicateTool(f"two tools have the name {name!r}", tool=name)
        keys = tuple(tool_key(tool) for tool in tools if policy.only in (None, tool.name))
        if not keys:
            raise NoTools(
                f"there is no tool named {policy.only!r}"
                if tools
                else "a call is required but there are no tools"
            )
        for key in keys:
            parameters_of(self, key)
        return turn_grammars(vocabulary, self, self.turn_rules).strict(keys, policy, in_reasoning)

    def open_grammar(
        self,
        tools: Sequence[Tool],
        vocabulary: Vocabulary,
        *,
        in_reasoning: bool = False,
        continued: bool = False,
    ) -> Grammar:
        """The grammar of text that nobody constrained: any name, any value.

        `tools` tell what type a value has; a tool whose schema cannot be read is any tool. `continued`: the
        text goes on in the middle of an answer, where line breaks are text.
        """
        keys: list[ToolKey] = []
        for tool in {tool.name: tool for tool in tools}.values():
            # What cannot be enforced still says what type a value has.
            key = tool_key(replace(tool, options=replace(tool.options, widen=True)))
            try:
                parameters_of(self, key)
            except (GrammarsError, RecursionError):
                continue
            keys.append(key)
        return turn_grammars(vocabulary, self, self.turn_rules).open(tuple(keys), in_reasoning, continued)

    def text_grammar(
        self, vocabulary: Vocabulary, answer: Grammar | None = None, *, in_reasoning: bool = False
    ) -> Grammar:
        """The grammar of a turn of reasoning, where the format has any, and an answer without calls.

        `answer`: a grammar of whole turns (`start: … END`); None for free text, in which a call's markers are
        text unless they are tokens.
        """
        return turn_grammars(vocabulary, self, self.turn_rules).text(answer, in_reasoning)

    def widened(self, tool: Tool) -> tuple[Widened, ...]:
        """The keywords of a tool's parameters that its grammar does not enforce."""
        return parameters_of(self, tool_key(tool)).widened
