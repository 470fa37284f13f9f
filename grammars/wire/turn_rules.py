"""What stands around the calls of a turn: reasoning, visible text, text between calls, the end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from larksong.engine.automata.text_until import Stop
from larksong.engine.grammar.attributes import More, Tail
from larksong.engine.grammar.grammar import Definition, Rule, Terminal
from larksong.engine.grammar.terminals import Literal, Pattern, Role, Special, TextUntil
from larksong.engine.vocabulary import Vocabulary
from larksong.grammars.tools import CallPolicy
from larksong.grammars.wire.declaration import BREAK, FormatDeclaration
from larksong.grammars.wire.markers import marker

# The rule of several sections of calls.
_SECTIONS = "sections"


@dataclass
class TurnRules:
    """The rules of a turn; it adds their terminals to `terminals`.

        start:   BREAK answer | BREAK THINK_OPEN BREAK thought      (in reasoning: BREAK thought)
        thought: REASONING? THINK_CLOSE BREAK answer | REASONING? calls END
        answer:  CONTENT? calls END | CONTENT? END

    Formats with `text_between_calls` have text between and after calls, too, where more calls may come and
    the turn need not consist of calls. `stops`: where text ends because calls begin. `in_reasoning`: the
    prompt ends inside reasoning.
    """

    format: FormatDeclaration
    policy: CallPolicy
    vocabulary: Vocabulary
    terminals: dict[str, Terminal]
    stops: tuple[Stop, ...]
    in_reasoning: bool

    @property
    def has_text_between_calls(self) -> bool:
        policy = self.policy
        if not self.format.text_between_calls or not policy.text_between_calls:
            return False
        if policy.required or policy.min_calls:
            return False
        # The calls of each section are counted anew.
        return self.format.root == "calls" or policy.max_calls is None

    def calls(self, template: tuple[Rule, ...]) -> tuple[Rule, ...]:
        """The template with text between the calls, or between the sections of calls, where it may stand."""
        if not self.has_text_between_calls:
            return template
        root = self.format.root
        one, several = ("call", "calls") if root == "calls" else (root, _SECTIONS)
        repeated = [Rule(several, (several, *between, one)) for between in (("GAP",), ("GAP", "REMARK"))]
        if root != "calls":
            return (Rule(several, (one,)), *repeated, *template)
        kept = (rule for rule in template if rule.origin != "calls" or rule.expansion[0] != "calls")
        return (*kept, *repeated)

    def rules(self) -> list[Rule]:
        """The rules around the calls."""
        called = self._ends_of_calls()
        answers = list(called)
        if not self.policy.required:
            answers += [("CONTENT", *answer) for answer in called]
            if not self.policy.min_calls:
                answers += [("END",), ("CONTENT", "END")]
        self._add("BREAK", BREAK)
        starts: list[tuple[str, ...]] = [("BREAK", "answer")]
        stops = self.stops
        if self.format.reasoning is not None and (self.policy.reasoning or self.in_reasoning):
            starts, stops = self._with_reasoning(*self.format.reasoning)
        text = TextUntil(stops, open_end=True)
        self.terminals["CONTENT"] = Terminal("CONTENT", text, Role.CONTENT)
        self.terminals["REMARK"] = Terminal("REMARK", text, Role.CONTENT, More())
        if self.policy.required and len(starts) == 1 and not self.in_reasoning:
            starts = [("answer",)]  # nothing but calls: what opens the first is forced
        rules = [Rule("start", start) for start in starts]
        if any("thought" in start for start in starts):
            thoughts = [("THINK_CLOSE", "BREAK", "answer"), *called]
            rules += [
                Rule("thought", (*before, *each)) for each in thoughts for before in ((), ("REASONING",))
            ]
        return [*rules, *(Rule("answer", answer) for answer in answers)]

    def opened(self, rules: Sequence[Rule], continued: bool) -> Sequence[Rule]:
        """The rules of a whole turn that nobody constrained.

        `continued`: the text goes on in the middle of an answer, where line breaks are text.
        """
        self._add("BREAK", Pattern(r"\n*"))
        if not continued:
            return rules
        content = TextUntil(self.stops, open_end=True)
        self.terminals["CONTENT"] = Terminal("CONTENT", content, Role.CONTENT)
        kept = (rule for rule in rules if rule.origin not in ("start", "thought"))
        return (Rule("start", ("answer",)), *kept)

    def _ends_of_calls(self) -> list[tuple[str, ...]]:
        """All calls of a turn, and how it may end behind them."""
        root = self.format.root
        if self.has_text_between_calls:
            root = root if root == "calls" else _SECTIONS
            # Blanks behind a call are no text; that text can be blank as long as it likes.
            self.terminals["GAP"] = Terminal("GAP", Pattern(r"\n*"), predicate=Tail())
            return [(root, "END"), (root, "GAP", "END"), (root, "GAP", "REMARK", "END")]
        if self.format.call_separator == "\n":
            self.terminals["TAIL"] = Terminal("TAIL", Literal("\n"), predicate=Tail())
            return [(root, "END"), (root, "TAIL", "END")]
        return [(root, "END")]

    def _with_reasoning(self, opening: str, closing: str) -> tuple[list[tuple[str, ...]], tuple[Stop, ...]]:
        """The ways to begin a turn that may have reasoning, and where text ends in it."""
        opener, closer = marker(opening, self.vocabulary), marker(closing, self.vocabulary)
        self._add("THINK_OPEN", opener)
        self._add("THINK_LEAD", self.format.reasoning_lead)
        self._add("THINK_CLOSE", closer)
        ends = () if isinstance(closer, Special) else (Stop(closing.encode(), ("THINK_CLOSE",)),)
        thought = TextUntil((*self.stops, *ends), open_end=True)
        self.terminals["REASONING"] = Terminal("REASONING", thought, Role.REASONING)
        answer = ("BREAK", "answer")
        if self.in_reasoning:
            return [("BREAK", "thought")], self.stops
        if isinstance(opener, Special):
            return [answer, ("BREAK", "THINK_OPEN", "THINK_LEAD", "thought")], self.stops
        if self.policy.required:
            return [answer], self.stops
        # In letters, text that begins with the marker is reasoning; anywhere else it is text.
        stops = (*self.stops, Stop(opening.encode(), ("THINK_OPEN",), initial=True))
        return [answer, ("BREAK", "CONTENT", "THINK_OPEN", "THINK_LEAD", "thought")], stops

    def _add(self, name: str, definition: Definition) -> None:
        self.terminals[name] = Terminal(name, definition)
