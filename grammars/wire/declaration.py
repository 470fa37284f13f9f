"""What the author of a wire format says of it: how a model family writes a tool call as text."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from larksong.engine.grammar.grammar import Definition, Grammar, Terminal
from larksong.engine.grammar.terminals import Pattern
from larksong.engine.vocabulary import Vocabulary
from larksong.grammars.errors import InvalidToolName
from larksong.grammars.schema import Schema
from larksong.grammars.tools import Tool

# The line breaks with which turns and answers begin, and that models write between their parts.
BREAK = Pattern(r"\n{0,2}")


class FormatDeclaration(ABC):
    """The Lark template of a format's calls, its markers, and how names and arguments are written.

    The template begins with the rule `root`; one of its rules is `calls`, whose items are counted. Its
    terminals `SECTION`, `CALL`, `FUNCTION` (the name, with what stands around it), `ARGUMENTS` (the tool's
    own grammar) and `SEPARATOR` are known; `markers` says what the others match. What begins with `open` is
    for the open build: text that nobody constrained, which is read more freely than it may be written.
    """

    name: str
    """what `--format` and `tool_format` take"""
    aliases: tuple[str, ...] = ()
    """other names for it"""
    template: ClassVar[str]
    """the calls, as a Lark grammar"""
    open_template: ClassVar[str] = ""
    """the same for the open build, where it has more ways"""
    root: ClassVar[str] = "calls"
    """the template's first rule"""
    opening: ClassVar[tuple[str, ...]] = ()
    """the terminals with which calls begin, up to the first name, where they are not SECTION CALL or CALL"""
    open_openings: ClassVar[tuple[tuple[str, ...], ...]] = ()
    """other ways to begin them"""
    section_start: str = ""
    """the text that begins the section of all calls, in formats that have one"""
    call_start: str
    """the text that begins a call"""
    call_separator: ClassVar[str] = ""
    """the text between two calls; a line break may also end the turn"""
    function_name_prefix: ClassVar[str] = ""
    """the text between `call_start` and the name"""
    open_function_name_prefixes: ClassVar[tuple[str, ...]] = ()
    """its spellings, where there are several"""
    text_between_calls: ClassVar[bool] = False
    """whether text may stand between and after calls: a marker ends them, and no template forbids it"""
    bare_json: ClassVar[bool] = False
    """whether nothing but JSON begins a call: a text is one where a declared name follows `call_start`"""
    substitution: ClassVar[tuple[str, str] | None] = None
    """a marker that models write inside raw strings for want of a text, and that text"""
    reasoning: tuple[str, str] | None = ("<think>", "</think>")
    """the markers around reasoning"""
    reasoning_lead: ClassVar[Definition] = BREAK
    """what follows the marker that opens reasoning"""

    # -- grammars

    @abstractmethod
    def markers(self, vocabulary: Vocabulary) -> Iterable[Terminal]:
        """The terminals of the template that are the format's own."""

    def open_markers(self, vocabulary: Vocabulary) -> Iterable[Terminal]:
        """Those that are read more freely in the open build."""
        return ()

    @abstractmethod
    def function_text(self, name: str) -> str:
        """A function's name with what ends it; what stands before it is in `function_name_prefix`."""

    @abstractmethod
    def arguments(self, tool: Tool, parameters: Schema, vocabulary: Vocabulary | None = None) -> Grammar:
        """The grammar of a tool's arguments; markers are letters where `vocabulary` has no token for them."""

    @abstractmethod
    def shortest_arguments(self, parameters: Schema, vocabulary: Vocabulary | None = None) -> str:
        """The shortest text of that grammar (see `larksong.grammars.json.shortest`)."""

    @abstractmethod
    def open_arguments(self, parameters: Schema | None, vocabulary: Vocabulary | None = None) -> Grammar:
        """The grammar of arguments that nobody constrained; `parameters` of a declared tool, else None."""

    # -- texts

    @abstractmethod
    def render_call(self, name: str, arguments: Mapping[str, Any]) -> str:
        """A turn of one call as the model family writes it."""

    @abstractmethod
    def system_text(self, tools: Sequence[Tool]) -> str:
        """A description of the tools and the format, for models whose own template has none."""

    def render_calls(self, calls: Iterable[tuple[str, Mapping[str, Any]]]) -> str:
        """A turn of several calls as the model family writes it."""
        return self.call_separator.join(self.render_call(name, arguments) for name, arguments in calls)

    def history_ids(self, calls: Sequence[tuple[str, str]]) -> dict[str, str]:
        """The ids of a conversation's calls as the family's chat template takes them.

        `calls`: the id and the function's name of each, in order.
        """
        return {id: id for id, _ in calls}

    def written_ids(self, text: str) -> list[str]:
        """The ids that a turn's calls have in its text; empty in formats that write none."""
        return []

    # -- reasoning

    @property
    def reasoning_close(self) -> str:
        """The marker that ends reasoning; "" where there is none."""
        return self.reasoning[1] if self.reasoning is not None else ""

    def reasons(self, vocabulary: Vocabulary) -> bool:
        """Whether turns may begin with reasoning that a marker of its own opens."""
        return self.reasoning is not None and self.reasoning[0] in vocabulary.special

    def ends_in_reasoning(self, prompt: str) -> bool:
        """Whether a prompt ends inside reasoning: its template has written the marker that opens it."""
        if self.reasoning is None:
            return False
        opener, closer = self.reasoning
        _, found, tail = prompt.rpartition(opener)
        return bool(found) and closer not in tail and not tail.strip()

    # -- names

    def check_names(self, tool: Tool, parameters: Schema) -> None:
        """Refuse names that the format cannot carry (`InvalidToolName`)."""
        self.refuse_name(tool, "")

    def refuse_name(self, tool: Tool, forbidden: str) -> None:
        """Refuse a tool's name that is empty, or has a character that is not printable or one of `forbidden`.

        Those of `forbidden` would end the name too early.
        """
        wrong = _why_refused(tool.name, forbidden)
        if wrong:
            raise InvalidToolName(
                f"{tool.name!r} cannot be a tool's name in {self.name}: {wrong}", tool=tool.name
            )

    def refuse_parameter(self, tool: Tool, name: str, forbidden: str, pointer: str) -> None:
        """Refuse a parameter's or member's name for the same reasons; `pointer` is where it is declared."""
        wrong = _why_refused(name, forbidden)
        if wrong:
            raise InvalidToolName(
                f"tool {tool.name!r}: {name!r} cannot be a parameter's name in {self.name}: {wrong}",
                tool=tool.name,
                pointer=pointer,
            )


def _why_refused(name: str, forbidden: str) -> str:
    """Why a name cannot be written, and what helps; "" where it can."""
    if not name:
        return "it is empty; give it at least one character"
    for character in name:
        if character in forbidden:
            return f"it has {character!r}, which means something else there; rename it without"
        if not character.isprintable():
            return f"it has {character!r}, which is not printable; rename it without"
    return ""
