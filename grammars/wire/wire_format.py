"""What a wire format is: how a model family writes a tool call as text."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import product
from typing import Any, ClassVar, NamedTuple

from lark import Lark
from lark.lexer import Lexer

from larksong.engine.automata.text_until import Stop
from larksong.engine.grammar.attributes import Action, Close, CountItems, Items, More, Tail
from larksong.engine.grammar.grammar import Grammar, Rule
from larksong.engine.grammar.terminals import (
    Choice,
    Definition,
    Literal,
    Pattern,
    Role,
    Special,
    Sub,
    Terminal,
    TextUntil,
)
from larksong.engine.vocabulary import Vocabulary
from larksong.grammars.errors import DuplicateTool, GrammarsError, InvalidToolName, NoTools
from larksong.grammars.schema import Options, Schema, Widened, read_parameters
from larksong.grammars.tools import CallPolicy, Tool

_CACHED_TOOLS = 4096
_CACHED_REQUESTS = 256
# So many tools are made while the request is built, hidden by the prompt's prefill; of more, those called.
_MADE_AT_ONCE = 16

# The line breaks with which turns and answers begin, and that models write between their parts.
BREAK = Pattern(r"\n{0,2}")


# What names look like that no request declares. They hold no blanks and none of the characters that end one.
OTHER_NAME = r"[^\s\x00-\x1f\x7f<>\"'{}\[\],:=]{1,128}"


# The rule of several sections of calls.
_SECTIONS = "sections"

# Stands for a name, to see what a format writes around it.
_PLACE = "\ue000"


class ToolText(NamedTuple):
    """The key under which what is made from a tool is kept: its content (see `tool_text`) and options."""

    content: str
    options: Options


class WireFormat(ABC):
    """A wire format. A subclass has the Lark template of the calls and writes a tool's arguments.

    The template begins with the rule `root`; one of its rules is `calls`, whose items are counted. Its
    terminals `SECTION`, `CALL`, `FUNCTION` (the name, with what stands around it), `ARGUMENTS` (the
    tool's own
    grammar) and `SEPARATOR` are known here; the subclass says what the others match in `markers`.

    Around the calls stand reasoning and visible text, the same way in every format that does not say
    otherwise in `turn`:

        start:   BREAK answer | BREAK THINK_OPEN BREAK thought      (in reasoning: BREAK thought)
        thought: REASONING? THINK_CLOSE BREAK answer | REASONING? calls END
        answer:  CONTENT? calls END | CONTENT? END

    Formats with `remarks` have text between and after calls, too, where more calls may come and the turn need
    not consist of calls (see `_with_remarks`).
    """

    name: str
    aliases: tuple[str, ...] = ()
    template: ClassVar[str]
    open_template: ClassVar[str] = ""
    """the template for text that nobody constrained, where it has more ways than `template`"""
    root: ClassVar[str] = "calls"
    call_marker: str
    """the text that begins a call"""
    bare_calls: ClassVar[bool] = False
    """whether that is JSON and all that announces calls, so that an answer that is JSON may begin alike"""
    section_marker: str = ""
    """the text that begins the section of all calls, in formats that have one"""
    function_prefix: ClassVar[str] = ""
    """what stands between the marker and the name"""
    open_prefixes: ClassVar[tuple[str, ...]] = ()
    """its spellings in text that nobody constrained, where there are others"""
    spelled: ClassVar[tuple[str, str] | None] = None
    """a marker that models write inside raw strings for want of a text, and that text"""
    separator: ClassVar[str] = ""
    remarks: ClassVar[bool] = False
    """whether text may stand between and after calls: a marker ends them, and no template forbids it"""
    reasoning: tuple[str, str] | None = ("<think>", "</think>")
    """the markers around reasoning"""
    reasoning_lead: ClassVar[Definition] = BREAK
    """what follows the marker that opens reasoning"""

    # -- what a subclass says

    @abstractmethod
    def markers(self, vocabulary: Vocabulary) -> Mapping[str, Terminal]:
        """The terminals of the template that are the format's own."""

    def open_markers(self, vocabulary: Vocabulary) -> Mapping[str, Terminal]:
        """Those that are read more freely in text that nobody constrained."""
        return {}

    @abstractmethod
    def function_text(self, name: str) -> str:
        """A function's name with what ends it; what stands before it is in `function_prefix`."""

    @abstractmethod
    def arguments(self, tool: Tool, parameters: Schema, vocabulary: Vocabulary | None = None) -> Grammar:
        """The grammar of a tool's arguments; markers are letters where `vocabulary` has no token for them."""

    @abstractmethod
    def shortest_arguments(self, parameters: Schema, vocabulary: Vocabulary | None = None) -> str:
        """The shortest text of that grammar (see `larksong.grammars.json.shortest`)."""

    @abstractmethod
    def open_arguments(self, parameters: Schema | None, vocabulary: Vocabulary | None = None) -> Grammar:
        """The grammar of arguments that nobody constrained; `parameters` of a declared tool, else None."""

    @abstractmethod
    def render_call(self, name: str, arguments: Mapping[str, Any]) -> str:
        """A turn of one call as the model family writes it."""

    @abstractmethod
    def system_text(self, tools: Sequence[Tool]) -> str:
        """A description of the tools and the format, for models whose own template has none."""

    def render_calls(self, calls: Iterable[tuple[str, Mapping[str, Any]]]) -> str:
        """A turn of several calls as the model family writes it."""
        return self.separator.join(self.render_call(name, arguments) for name, arguments in calls)

    def history_ids(self, calls: Sequence[tuple[str, str]]) -> dict[str, str]:
        """The ids of a conversation's calls as the family's chat template takes them.

        `calls`: the id and the function's name of each, in order.
        """
        return {id: id for id, _ in calls}

    def written_ids(self, text: str) -> list[str]:
        """The ids that a turn's calls have in its text; empty in formats that write none."""
        return []

    def reasons(self, vocabulary: Vocabulary) -> bool:
        """Whether turns may begin with reasoning that a marker of its own opens."""
        return self.reasoning is not None and self.reasoning[0] in vocabulary.special

    @property
    def reasoning_close(self) -> str:
        """The marker that ends reasoning; "" where there is none."""
        return self.reasoning[1] if self.reasoning is not None else ""

    def check_names(self, tool: Tool, parameters: Schema) -> None:
        """Refuse names that the format cannot carry (`InvalidToolName`)."""
        self.refuse_name(tool, "")

    def refuse_name(self, tool: Tool, unfit: str) -> None:
        """Refuse a tool's name that is empty, or has a character that is not printable or one of `unfit`.

        Those of `unfit` would end the name too early.
        """
        wrong = unfit_name(tool.name, unfit)
        if wrong:
            raise InvalidToolName(
                f"{tool.name!r} cannot be a tool's name in {self.name}: {wrong}", tool=tool.name
            )

    def refuse_parameter(self, tool: Tool, name: str, unfit: str, pointer: str) -> None:
        """Refuse a parameter's or member's name for the same reasons; `pointer` is where it is declared."""
        wrong = unfit_name(name, unfit)
        if wrong:
            raise InvalidToolName(
                f"tool {tool.name!r}: {name!r} cannot be a parameter's name in {self.name}: {wrong}",
                tool=tool.name,
                pointer=pointer,
            )

    # -- what all formats share

    def grammar(
        self,
        tools: Sequence[Tool],
        policy: CallPolicy,
        vocabulary: Vocabulary,
        *,
        in_reasoning: bool = False,
    ) -> Grammar:
        """The strict grammar of a turn with these tools; the same object for the same request.

        `in_reasoning`: the prompt ends inside reasoning (see `ends_in_reasoning`).
        """
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
        texts = tuple(ToolText(tool_text(tool), tool.options) for tool in callable_tools)
        for text in texts:
            self._parameters(text)
        return self._grammar(texts, policy, vocabulary, in_reasoning)

    def ends_in_reasoning(self, prompt: str) -> bool:
        """Whether a prompt ends inside reasoning: its template has written the marker that opens it."""
        if self.reasoning is None:
            return False
        opener, closer = self.reasoning
        _, found, tail = prompt.rpartition(opener)
        return bool(found) and closer not in tail and not tail.strip()

    def open_grammar(
        self,
        tools: Sequence[Tool],
        vocabulary: Vocabulary,
        *,
        in_reasoning: bool = False,
        continued: bool = False,
    ) -> Grammar:
        """The grammar of text that nobody constrained: any name, any value.

        It is the same object for the same request.

        `tools` tell what type a value has; a tool whose schema cannot be read is any tool. `continued`: the
        text goes on in the middle of an answer, where line breaks are text.
        """
        texts = []
        for tool in {tool.name: tool for tool in tools}.values():
            # What cannot be enforced still says what type a value has.
            text = ToolText(tool_text(tool), replace(tool.options, widen=True))
            try:
                self._parameters(text)
            except (GrammarsError, RecursionError):
                continue
            texts.append(text)
        # Behind a call the reader begins anew: what may stand there is what may stand at the beginning.
        policy = CallPolicy(remarks=False)
        return self._grammar(tuple(texts), policy, vocabulary, in_reasoning, 2 if continued else 1)

    def widened(self, tool: Tool) -> tuple[Widened, ...]:
        """The keywords of a tool's parameters that its grammar does not enforce."""
        return self._parameters(ToolText(tool_text(tool), tool.options))[1].widened

    @lru_cache(maxsize=_CACHED_TOOLS)  # noqa: B019 - formats are singletons
    def _parameters(self, text: ToolText) -> tuple[Tool, Schema]:
        tool = Tool(**json.loads(text.content), options=text.options)
        parameters = read_parameters(tool.parameters, tool.name, tool.options)
        self.check_names(tool, parameters)
        return tool, parameters

    @lru_cache(maxsize=_CACHED_TOOLS)  # noqa: B019
    def _arguments(self, text: ToolText, vocabulary: Vocabulary) -> Grammar:
        return self.arguments(*self._parameters(text), vocabulary)

    @lru_cache(maxsize=_CACHED_TOOLS)  # noqa: B019
    def _open_arguments(self, text: ToolText | None, vocabulary: Vocabulary) -> Grammar:
        return self.open_arguments(self._parameters(text)[1] if text else None, vocabulary)

    @lru_cache(maxsize=_CACHED_TOOLS)  # noqa: B019
    def _shortest(self, text: ToolText, vocabulary: Vocabulary) -> str:
        return self.shortest_arguments(self._parameters(text)[1], vocabulary)

    @lru_cache(maxsize=_CACHED_REQUESTS)  # noqa: B019
    def _grammar(
        self,
        texts: tuple[ToolText, ...],
        policy: CallPolicy,
        vocabulary: Vocabulary,
        in_reasoning: bool,
        is_open: int = 0,
    ) -> Grammar:
        by_name = {self._parameters(text)[0].name: text for text in texts}
        if len(texts) <= _MADE_AT_ONCE and not is_open:
            for text in texts:
                self._arguments(text, vocabulary)
        terminals = {
            **self._known_terminals(by_name, vocabulary, bool(is_open)),
            **self.markers(vocabulary),
            **(self.open_markers(vocabulary) if is_open else {}),
            "END": Terminal("END", Special(vocabulary.eos_ids, "<end>"), predicate=Close()),
        }
        rules = template_rules((is_open and self.open_template) or self.template, self.root)
        if self.has_remarks(policy):
            rules = self._with_remarks(rules)
        rules = (*self.turn(policy, vocabulary, terminals, in_reasoning), *rules)
        if is_open:
            befores: list[tuple[str, ...]] = [("BEFORE_NAME",)] if "BEFORE_NAME" in terminals else [()]
            if "" in self.open_prefixes:
                befores.append(())
            rules = tuple(
                opened
                for rule in rules
                for each in befores
                for opened in self._opened(rule, bool(by_name), each)
            )
            rules = tuple(dict.fromkeys(rules))
            rules = self.opened_turn(rules, terminals, is_open == 2)
        used = {name for rule in rules for name in rule.expansion}
        count = Items(policy.min_calls or int(policy.required), policy.max_calls)
        actions: dict[str, Action] = {"calls": CountItems(count)} if count.cap else {}
        kept = {name: terminal for name, terminal in terminals.items() if name in used}
        return Grammar(rules, kept, actions, title=f"{self.name}: {', '.join(by_name)}")

    @staticmethod
    def _opened(rule: Rule, has_tools: bool, before: tuple[str, ...]) -> list[Rule]:
        """A rule of the template for text that nobody constrained: beside the declared names any other."""
        if "FUNCTION" not in rule.expansion:
            return [rule]
        at = rule.expansion.index("FUNCTION")
        head, tail = (*rule.expansion[:at], *before), rule.expansion[at + 1 :]
        names = [("FUNCTION",)] if has_tools else []
        return [Rule(rule.origin, (*head, *name, *tail)) for name in (*names, ("OTHER_NAME", "NAME_END"))]

    def _known_terminals(
        self, by_name: Mapping[str, ToolText], vocabulary: Vocabulary, is_open: bool
    ) -> dict[str, Terminal]:
        marker = self.marker(self.call_marker, vocabulary)
        prefixes = (is_open and self.open_prefixes) or (self.function_prefix,)
        optional = is_open and "" in prefixes
        if not isinstance(marker, Special) and not optional:
            # In letters, what follows the marker belongs to it: the marker alone may be the words of a text.
            marker = self.one_of([self.call_marker + prefix for prefix in prefixes])
            prefixes = ("",)
        # In open text, what stands before a name is read before it is known whether the name is declared.
        befores = [each for each in prefixes if each] if is_open else []
        before = Role.BEFORE_NAME if optional else Role.MARKUP
        prefix = "" if is_open else prefixes[0]
        functions = Choice(tuple((self.function_text(name), name) for name in by_name), prefix)
        _, after = self.function_text(_PLACE).split(_PLACE)
        known = "|".join(
            [re.escape(name) for name in by_name] + [re.escape(each) + ".*" for each in befores if optional]
        )
        arguments: Callable[..., Grammar] = self._open_arguments if is_open else self._arguments
        others = {
            **({"BEFORE_NAME": Terminal("BEFORE_NAME", self.one_of(befores), before)} if befores else {}),
            "OTHER_NAME": Terminal(
                "OTHER_NAME", Pattern((f"(?!(?:{known})$)" if known else "") + OTHER_NAME), Role.NAME
            ),
            "NAME_END": Terminal("NAME_END", Literal(after) if after else Pattern(""), Role.NAME_END),
        }
        return {
            **(others if is_open else {}),
            "SECTION": Terminal("SECTION", self.marker(self.section_marker, vocabulary)),
            "CALL": Terminal("CALL", marker, predicate=More()),
            "SEPARATOR": Terminal("SEPARATOR", Literal(self.separator), predicate=More()),
            "FUNCTION": Terminal("FUNCTION", functions, Role.FUNCTION_OPEN),
            "ARGUMENTS": Terminal(
                "ARGUMENTS",
                Sub(
                    choose=lambda name: arguments(by_name.get(str(name)), vocabulary),
                    shortest=lambda name: self._shortest(by_name[str(name)], vocabulary),
                ),
            ),
        }

    def has_remarks(self, policy: CallPolicy) -> bool:
        """Whether text may stand between and after the calls of a turn."""
        if not self.remarks or not policy.remarks or policy.required or policy.min_calls:
            return False
        # The calls of each section are counted anew.
        return self.root == "calls" or policy.max_calls is None

    def _with_remarks(self, rules: tuple[Rule, ...]) -> tuple[Rule, ...]:
        """The template with text between the calls, or between the sections of calls."""
        one, several = ("call", "calls") if self.root == "calls" else (self.root, _SECTIONS)
        repeated = [Rule(several, (several, *between, one)) for between in (("GAP",), ("GAP", "REMARK"))]
        if self.root != "calls":
            return (Rule(several, (one,)), *repeated, *rules)
        kept = (rule for rule in rules if rule.origin != "calls" or rule.expansion[0] != "calls")
        return (*kept, *repeated)

    def turn(
        self,
        policy: CallPolicy,
        vocabulary: Vocabulary,
        terminals: dict[str, Terminal],
        in_reasoning: bool,
    ) -> list[Rule]:
        """The rules of what stands around the calls; adds their terminals."""
        stops = self.stops(terminals)
        has_remarks = self.has_remarks(policy)
        root = _SECTIONS if has_remarks and self.root != "calls" else self.root
        answers: list[tuple[str, ...]] = [(root, "END")]
        if has_remarks:
            # Blanks behind a call are no text; that text can be blank as long as it likes.
            terminals["GAP"] = Terminal("GAP", Pattern(r"\n*"), predicate=Tail())
            answers += [(root, "GAP", "END"), (root, "GAP", "REMARK", "END")]
        elif self.separator == "\n":
            terminals["TAIL"] = Terminal("TAIL", Literal("\n"), predicate=Tail())
            answers.append((root, "TAIL", "END"))
        if not policy.required:
            answers += [("CONTENT", *answer) for answer in answers]
            if not policy.min_calls:
                answers += [("END",), ("CONTENT", "END")]
        terminals["BREAK"] = Terminal("BREAK", BREAK)
        starts: list[tuple[str, ...]] = [("BREAK", "answer")]
        content = stops
        if self.reasoning is not None and (policy.reasoning or in_reasoning):
            opener, closer = (self.marker(text, vocabulary) for text in self.reasoning)
            terminals["THINK_OPEN"] = Terminal("THINK_OPEN", opener)
            terminals["THINK_LEAD"] = Terminal("THINK_LEAD", self.reasoning_lead)
            terminals["THINK_CLOSE"] = Terminal("THINK_CLOSE", closer)
            ends = (
                () if isinstance(closer, Special) else (Stop(self.reasoning[1].encode(), ("THINK_CLOSE",)),)
            )
            terminals["REASONING"] = Terminal(
                "REASONING", TextUntil((*stops, *ends), open_end=True), Role.REASONING
            )
            if in_reasoning:
                starts = [("BREAK", "thought")]
            elif isinstance(opener, Special):
                starts.append(("BREAK", "THINK_OPEN", "THINK_LEAD", "thought"))
            elif not policy.required:
                # In letters, text that begins with the marker is reasoning; anywhere else it is text.
                starts.append(("BREAK", "CONTENT", "THINK_OPEN", "THINK_LEAD", "thought"))
                content = (*stops, Stop(self.reasoning[0].encode(), ("THINK_OPEN",), initial=True))
        text = TextUntil(content, open_end=True)
        terminals["CONTENT"] = Terminal("CONTENT", text, Role.CONTENT)
        terminals["REMARK"] = Terminal("REMARK", text, Role.CONTENT, More())
        if policy.required and len(starts) == 1 and not in_reasoning:
            starts = [("answer",)]  # nothing but calls: what opens the first is forced
        rules = [Rule("start", start) for start in starts]
        if any("thought" in start for start in starts):
            closed = ("THINK_CLOSE", "BREAK", "answer")
            called = [answer for answer in answers if answer[0] == root]
            thoughts = [closed, *called]
            rules += [
                Rule("thought", (*before, *each)) for each in thoughts for before in ((), ("REASONING",))
            ]
        return [*rules, *(Rule("answer", answer) for answer in answers)]

    @property
    def opening(self) -> tuple[str, ...]:
        """The terminals with which calls begin, up to the first name."""
        return ("SECTION", "CALL") if self.section_marker else ("CALL",)

    def opened_turn(
        self, rules: tuple[Rule, ...], terminals: dict[str, Terminal], continued: bool
    ) -> tuple[Rule, ...]:
        """What stands around the calls where nobody constrained it; `continued` as in `open_grammar`."""
        terminals["BREAK"] = Terminal("BREAK", Pattern(r"\n*"))
        if not continued:
            return rules
        content = TextUntil(self.stops(terminals), open_end=True)
        terminals["CONTENT"] = Terminal("CONTENT", content, Role.CONTENT)
        kept = (rule for rule in rules if rule.origin not in ("start", "thought"))
        return (Rule("start", ("answer",)), *kept)

    def stops(self, terminals: Mapping[str, Terminal]) -> tuple[Stop, ...]:
        """Where text ends because calls begin: none where their first marker is a token, whose id ends it."""
        names = self.opening
        first = spellings(terminals[names[0]].definition)
        texts = [spellings(terminals[name].definition) for name in names]
        if not all(texts):
            names, texts = names[:1], [first]
        return tuple(Stop("".join(words).encode(), names) for words in product(*texts))

    def marker(self, text: str, vocabulary: Vocabulary | None) -> Definition:
        """A marker: by token id where the tokenizer holds it as a token of its own, else by its letters."""
        token = vocabulary.special.get(text) if vocabulary is not None else None
        return Literal(text) if token is None else Special(frozenset({token}), text)

    @staticmethod
    def enough() -> Close:
        """The predicate of what ends the section: refused while calls are missing."""
        return Close()

    @staticmethod
    def one_of(texts: Sequence[str]) -> Definition:
        """One of some spellings."""
        return Literal(texts[0]) if len(texts) == 1 else Choice(tuple((text, None) for text in texts))


def unfit_name(name: str, unfit: str) -> str:
    """Why a name cannot be written, and what helps; "" where it can."""
    if not name:
        return "it is empty; give it at least one character"
    for character in name:
        if character in unfit:
            return f"it has {character!r}, which means something else there; rename it without"
        if not character.isprintable():
            return f"it has {character!r}, which is not printable; rename it without"
    return ""


def spellings(definition: Definition) -> list[str]:
    """The texts of a literal or a choice; none of a token."""
    if isinstance(definition, Literal):
        return [definition.text]
    if isinstance(definition, Choice):
        return [definition.prefix + text for text, _ in definition.words]
    return []


def tool_text(tool: Tool) -> str:
    """A tool's content: the key under which what is made from it is kept. Its description plays no part."""
    return json.dumps({"name": tool.name, "parameters": tool.parameters})


def tool_lines(tools: Sequence[Tool], *, wrapped: bool = True) -> str:
    """The tools as chat templates list them: one line of JSON each, `wrapped` in OpenAI's form."""
    lines = []
    for tool in tools:
        function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
        shown = {"type": "function", "function": function} if wrapped else function
        lines.append(json.dumps(shown, ensure_ascii=False))
    return "\n".join(lines)


class _NoLexer(Lexer):
    def __init__(self, conf: Any) -> None:
        pass

    def lex(self, lexer_state: Any, parser_state: Any) -> Any:
        return iter(())


@lru_cache
def template_rules(template: str, root: str = "calls") -> tuple[Rule, ...]:
    """The rules of a Lark template, read by Lark itself; its terminals are declared."""
    lark = Lark(template, parser="lalr", lexer=_NoLexer, start=root, maybe_placeholders=False)
    return tuple(
        Rule(rule.origin.name, tuple(symbol.name for symbol in rule.expansion)) for rule in lark.rules
    )
