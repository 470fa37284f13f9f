"""What a wire format is: how a model family writes a tool call as text."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar

from lark import Lark
from lark.lexer import Lexer

from larksong.engine.attributes import Action, Close, CountItems, Items, More
from larksong.engine.grammar import Grammar, Rule
from larksong.engine.terminals import Choice, Definition, Literal, Role, Special, Sub, Terminal, TextUntil
from larksong.engine.text import Stop
from larksong.engine.vocabulary import Vocabulary
from larksong.grammars.errors import DuplicateTool, InvalidToolName, NoTools
from larksong.grammars.schema import Options, Schema, Widened, read_parameters
from larksong.grammars.tools import CallPolicy, Tool

_CACHED_TOOLS = 4096
_CACHED_REQUESTS = 256
# So many tools are made while the request is built, hidden by the prompt's prefill; of more, those called.
_MADE_AT_ONCE = 16


class WireFormat(ABC):
    """A wire format. A subclass has the Lark template of the envelope and writes a tool's arguments.

    The template's terminals: `CONTENT`, `END`, `FUNCTION` (the name, with what stands around it),
    `ARGUMENTS` (the tool's own grammar) and `SEPARATOR` between calls are known here; the subclass says what
    the others match in `markers`. Rules that must be there: `calls` and `call`.
    """

    name: ClassVar[str]
    template: ClassVar[str]
    call_marker: ClassVar[str]
    """the text that begins a call: content ends there"""
    function_prefixes: ClassVar[tuple[str, ...]]
    """the spellings of what stands between the marker and the name, each the end of the first"""
    separator: ClassVar[str] = "\n"

    # -- what a subclass says

    @abstractmethod
    def markers(self, vocabulary: Vocabulary) -> Mapping[str, Terminal]:
        """The terminals of the template that are the format's own."""

    @abstractmethod
    def function_text(self, name: str) -> str:
        """A function's name with what ends it; what stands before it is in `function_prefixes`."""

    @abstractmethod
    def arguments(self, tool: Tool, parameters: Schema) -> Grammar:
        """The grammar of a tool's arguments."""

    @abstractmethod
    def shortest_arguments(self, parameters: Schema) -> str:
        """The shortest text of that grammar (see `larksong.grammars.shortest`)."""

    @abstractmethod
    def render_call(self, name: str, arguments: Mapping[str, Any]) -> str:
        """A call as the model family writes it."""

    @abstractmethod
    def system_text(self, tools: Sequence[Tool]) -> str:
        """A description of the tools and the format, for models whose own template has none."""

    def check_names(self, tool: Tool, parameters: Schema) -> None:
        """Refuse names that the format cannot carry (`InvalidToolName`)."""
        if not tool.name or not tool.name.isprintable():
            raise InvalidToolName(f"{tool.name!r} cannot be a tool's name in {self.name}", tool=tool.name)

    # -- what all formats share

    def grammar(self, tools: Sequence[Tool], policy: CallPolicy, vocabulary: Vocabulary) -> Grammar:
        """The strict grammar of a turn with these tools; the same object for the same request."""
        callable_tools = [tool for tool in tools if policy.only in (None, tool.name)]
        names = [tool.name for tool in tools]
        for name in names:
            if names.count(name) > 1:
                raise DuplicateTool(f"two tools have the name {name!r}", tool=name)
        if not callable_tools:
            raise NoTools(
                f"there is no tool named {policy.only!r}"
                if tools
                else "a call is required but there are no tools"
            )
        texts = tuple((tool_text(tool), tool.options) for tool in callable_tools)
        for text in texts:
            self._parameters(*text)
        return self._grammar(texts, policy, vocabulary)

    def widened(self, tool: Tool) -> tuple[Widened, ...]:
        """The keywords of a tool's parameters that its grammar does not enforce."""
        return self._parameters(tool_text(tool), tool.options)[1].widened

    @lru_cache(maxsize=_CACHED_TOOLS)  # noqa: B019 - formats are singletons
    def _parameters(self, text: str, options: Options) -> tuple[Tool, Schema]:
        tool = Tool(**json.loads(text), options=options)
        parameters = read_parameters(tool.parameters, tool.name, options)
        self.check_names(tool, parameters)
        return tool, parameters

    @lru_cache(maxsize=_CACHED_TOOLS)  # noqa: B019
    def _arguments(self, text: str, options: Options) -> Grammar:
        return self.arguments(*self._parameters(text, options))

    @lru_cache(maxsize=_CACHED_TOOLS)  # noqa: B019
    def _shortest(self, text: str, options: Options) -> str:
        return self.shortest_arguments(self._parameters(text, options)[1])

    @lru_cache(maxsize=_CACHED_REQUESTS)  # noqa: B019
    def _grammar(
        self, texts: tuple[tuple[str, Options], ...], policy: CallPolicy, vocabulary: Vocabulary
    ) -> Grammar:
        by_name = {self._parameters(*text)[0].name: text for text in texts}
        functions = Choice(
            tuple((self.function_text(name), name) for name in by_name), self.function_prefixes
        )
        if len(texts) <= _MADE_AT_ONCE:
            for text in texts:
                self._arguments(*text)
        marker = self.marker(self.call_marker, vocabulary)
        separated = More()
        terminals = {
            "CALL": Terminal("CALL", marker),
            "SEPARATOR": Terminal("SEPARATOR", Literal(self.separator), predicate=separated),
            "FUNCTION": Terminal("FUNCTION", functions, Role.FUNCTION_OPEN),
            "ARGUMENTS": Terminal(
                "ARGUMENTS",
                Sub(
                    choose=lambda name: self._arguments(*by_name[str(name)]),
                    shortest=lambda name: self._shortest(*by_name[str(name)]),
                ),
            ),
            **self.markers(vocabulary),
            "END": Terminal("END", Special(vocabulary.eos_ids, "<end>"), predicate=Close()),
        }
        alternatives: list[tuple[str, ...]] = [("calls", "END")]
        if not policy.required:
            # With a marker that is a token, text ends by its id; else at the first marker in letters.
            stops = () if isinstance(marker, Special) else (Stop(self.call_marker.encode(), ("CALL",)),)
            content = TextUntil(stops, open_end=True)
            terminals["CONTENT"] = Terminal("CONTENT", content, Role.CONTENT)
            alternatives.append(("CONTENT", "calls", "END"))
            if not policy.min_calls:
                alternatives += [("END",), ("CONTENT", "END")]
        count = Items(policy.min_calls or int(policy.required), policy.max_calls)
        actions: dict[str, Action] = {"calls": CountItems(count)} if count.cap else {}
        rules = (
            *(Rule("start", alternative) for alternative in alternatives),
            *template_rules(self.template),
        )
        return Grammar(rules, terminals, actions, title=f"{self.name}: {', '.join(by_name)}")

    def marker(self, text: str, vocabulary: Vocabulary) -> Definition:
        """A marker: by token id where the tokenizer holds it as a token of its own, else by its letters."""
        token = vocabulary.special.get(text)
        return Literal(text) if token is None else Special(frozenset({token}), text)


def tool_text(tool: Tool) -> str:
    """A tool's content: the key under which what is made from it is kept. Its description plays no part."""
    return json.dumps({"name": tool.name, "parameters": tool.parameters})


class _NoLexer(Lexer):
    def __init__(self, conf: Any) -> None:
        pass

    def lex(self, lexer_state: Any, parser_state: Any) -> Any:
        return iter(())


@lru_cache
def template_rules(template: str) -> tuple[Rule, ...]:
    """The rules of a Lark template, read by Lark itself; its terminals are declared."""
    lark = Lark(template, parser="lalr", lexer=_NoLexer, start="calls", maybe_placeholders=False)
    return tuple(
        Rule(rule.origin.name, tuple(symbol.name for symbol in rule.expansion)) for rule in lark.rules
    )
