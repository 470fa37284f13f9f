"""What a turn was constrained by, and what its grammar would be if something had not been asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from larksong.engine.engine import Engine
from larksong.engine.errors import EngineError
from larksong.engine.grammar.grammar import Grammar, Rule, Sub, Terminal
from larksong.engine.grammar.terminals import Special
from larksong.engine.vocabulary import Vocabulary
from larksong.grammars.answers.response_format import response_grammar, response_widened
from larksong.grammars.errors import GrammarsError
from larksong.grammars.schema import DEFAULT_OPTIONS, Options, Widened, read_parameters
from larksong.grammars.tools import CallPolicy, Tool
from larksong.grammars.wire.wire_format import WireFormat


class PartGrammar(NamedTuple):
    """The grammar of arguments or of an answer; `widened`: pointers and keywords that it does not enforce."""

    grammar: Grammar
    widened: frozenset[tuple[str, str]]


@dataclass(frozen=True)
class Request:
    """Tools in a wire format; or, where `format` is None, one JSON text of `schema`.

    `in_reasoning`: the prompt ended inside reasoning (see `WireFormat.ends_in_reasoning`).
    """

    format: WireFormat | None = None
    tools: tuple[Tool, ...] = ()
    policy: CallPolicy = field(default_factory=CallPolicy)
    schema: Mapping[str, Any] | bool = True
    options: Options = DEFAULT_OPTIONS
    in_reasoning: bool = False

    def grammar(self, vocabulary: Vocabulary) -> Grammar:
        """The grammar of the turn. Raises `GrammarsError`."""
        if self.format is None:
            return response_grammar(self.schema, vocabulary, self.options)
        return self.format.grammar(self.tools, self.policy, vocabulary, in_reasoning=self.in_reasoning)

    def tool(self, name: str | None) -> Tool | None:
        return next((tool for tool in self.tools if tool.name == name), None)

    def schema_of(self, tool: Tool | None) -> Any:
        """The schema of a tool's arguments, or of the answer."""
        return self.schema if tool is None else tool.parameters

    def part(
        self, tool: Tool | None, schema: Mapping[str, Any], vocabulary: Vocabulary
    ) -> PartGrammar | None:
        """The grammar of a tool's arguments alone, or of the answer, by another schema; None if none."""
        try:
            if self.format is None or tool is None:
                options = replace(self.options, widen=True)
                left_out = _keywords(response_widened(schema, options))
                return PartGrammar(response_grammar(schema, vocabulary, options), left_out)
            changed = replace(tool, parameters=schema, options=replace(tool.options, widen=True))
            read = read_parameters(schema, tool.name, changed.options)
            arguments = self.format.arguments(changed, read, vocabulary)
        except (GrammarsError, EngineError, RecursionError):
            return None
        terminals = {
            "ARGUMENTS": Terminal("ARGUMENTS", Sub(lambda _: arguments, lambda _: "")),
            "END": Terminal("END", Special(vocabulary.eos_ids, "<end>")),
        }
        grammar = Grammar((Rule("start", ("ARGUMENTS", "END")),), terminals)
        return PartGrammar(grammar, _keywords(read.widened))

    def freer(self) -> Iterator[tuple[str, Any, Request]]:
        """The request without one of its wishes about calls: the request's field, its value, the rest."""
        policy = self.policy
        if policy.only is not None:
            yield "tool_choice", policy.only, replace(self, policy=replace(policy, only=None))
        free = replace(self, policy=replace(policy, required=False, min_calls=0))
        if policy.min_calls > 1 or (policy.min_calls and not policy.required):
            # Calls are required then, whatever tool_choice says.
            yield "min_tool_calls", policy.min_calls, free
        elif policy.required:
            yield "tool_choice", policy.only or "required", free
        if policy.max_calls is not None:
            more = replace(policy, max_calls=None)
            yield "max_tool_calls", policy.max_calls, replace(self, policy=more)


def _keywords(widened: Iterable[Widened]) -> frozenset[tuple[str, str]]:
    return frozenset((each.pointer, each.keyword) for each in widened)


def accepts(engine: Engine, grammar: Grammar, units: list[int]) -> int:
    """How many of `units` a grammar takes."""
    automaton = engine.automaton(grammar)
    here = automaton.start
    for count, unit in enumerate(units):
        edge = automaton.edge(here, unit)
        if edge is None:
            return count
        here = edge.target
    return len(units)
