"""Random walks over the tokens that masks allow."""

import json
from collections.abc import Callable, Iterable
from random import Random

from larksong.engine.events import Content, Json, ParseEvent, Text
from larksong.engine.matcher import Matcher
from larksong.engine.vocabulary import Vocabulary
from tests.support.calls import joined
from tests.support.masks import allowed
from tests.support.schemas import KEYS
from tests.support.vocabularies import cut, cut_with_markers, text_of

# What leads on in the formats: a walk that has to come to an end writes these where they are not data.
MARKUP = (
    b"<tool_call>\n<function=",
    b'<tool_call>\n{"name": "',
    b"</tool_call>",
    b"\n</parameter>\n</function>\n</tool_call>",
    b"\n</parameter>\n<parameter=",
    b"</function>\n</tool_call>",
    b"<tool_call>",
    b"</arg_value></tool_call>",
    b"</arg_value>\n</tool_call>",
    b"</parameter>\n</invoke>\n</minimax:tool_call>",
    b"</invoke>\n</minimax:tool_call>",
    b"\n</minimax:tool_call>",
    *(
        f"{piece}{end}".encode()
        for end in ("function_calls>", "tool_calls>", " calls>")
        for piece in (
            *(
                "</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜",
                "</｜DSML｜invoke>\n</｜DSML｜",
                "</｜DSML｜",
            ),
            *("</｜DSML｜ parameter>\n</｜DSML｜ invoke>\n</｜DSML｜", "</｜DSML｜ invoke>\n</｜DSML｜"),
        )
    ),
    b"</arg_value><arg_key>",
    b"</arg_value>\n<arg_key>",
    b'</parameter>\n<parameter name="',
    '</｜DSML｜parameter>\n<｜DSML｜parameter name="'.encode(),
    '</｜DSML｜ parameter>\n<｜DSML｜ parameter name="'.encode(),
    b"<|tool_call_end|>",
    b"<|tool_calls_section_end|>",
    b"<|call|>",
    b"<|end|>",
    b'<|"|>}<tool_call|>',
    b'<|"|>}',
    b'<|"|>]',
    b'<|"|>,',
    b"}<tool_call|>",
    b"<tool_call|>",
    b"</think>",
    b"[/THINK]",
    b"<channel|>",
)


class Walker:
    """Walks over a vocabulary: at random for a while, then towards the end."""

    def __init__(self, vocabulary: Vocabulary, names: Iterable[str] = KEYS) -> None:
        """`names`: those of JSON members that may be required, since no walk would find them by chance."""
        self.vocabulary = vocabulary
        self._keys = [cut(vocabulary, json.dumps(name, ensure_ascii=False).encode() + b":") for name in names]
        self._ids = {token[0]: i for i, token in enumerate(vocabulary.tokens) if len(token) == 1}
        pieces = {m[i:j] for m in (*MARKUP, b'"}}]') for i in range(len(m)) for j in range(i + 1, len(m) + 1)}
        self._markup = {i for i, token in enumerate(vocabulary.tokens) if token in pieces}
        self._spelled = [(markup, cut_with_markers(vocabulary, markup)) for markup in MARKUP]
        self._markers = set(vocabulary.special.values()) - vocabulary.eos_ids

    def walk(
        self,
        matcher: Matcher,
        rng: Random,
        *,
        wander: int,
        limit: int = 3000,
        visit: Callable[[Matcher, set[int]], None] = lambda matcher, choices: None,
    ) -> list[int]:
        """Advance `matcher` until it is finished, or `limit` tokens long; returns the tokens.

        The first `wander` tokens are any that are allowed. `visit` sees each mask as a set, before the step.
        """
        taken: list[int] = []
        planned: list[int] = []
        while not matcher.finished and len(taken) < limit:
            choices = allowed(matcher.mask())
            assert choices, "an empty mask"
            visit(matcher, choices)
            if not planned:
                planned = self._plan(matcher, choices, rng) if len(taken) >= wander else []
            token = planned.pop(0) if planned else self._any(choices, rng)
            assert token in choices
            matcher.advance(token)
            assert matcher.fault is None, (matcher.fault, text_of(self.vocabulary, [*taken, token]))
            taken.append(token)
        return taken

    def _any(self, choices: set[int], rng: Random) -> int:
        # Markers, ends and markup would drown among the text tokens.
        for rare, share in ((self._markers | self.vocabulary.eos_ids, 0.2), (self._markup, 0.4)):
            if rng.random() < share and (found := sorted(choices & rare)):
                return rng.choice(found)
        return rng.choice(sorted(choices))

    def _plan(self, matcher: Matcher, choices: set[int], rng: Random) -> list[int]:
        """Tokens that lead towards the end; none if any token does as well as another."""
        if ends := choices & self.vocabulary.eos_ids:
            return [min(ends)]
        if markers := sorted(choices & self._markers):
            return [markers[0]]
        for markup, tokens in self._spelled:
            if self._leads_on(matcher, tokens, markup, (Text, Content, Json)):
                return tokens.copy()
        # In a string everything is allowed, its end too; elsewhere the brackets come first.
        in_string = self._ids[ord("a")] in choices and self._ids[ord("}")] in choices
        candidates = [[self._ids[byte]] for byte in (b'"' if in_string else b"}]")]
        if not in_string:
            candidates += [*rng.sample(self._keys, len(self._keys)), [self._ids[ord('"')]]]
        for tokens in candidates:
            if self._leads_on(matcher, tokens, text_of(self.vocabulary, tokens), (Text, Content)):
                return tokens.copy()
        return []

    @staticmethod
    def _leads_on(matcher: Matcher, tokens: list[int], text: bytes, data: tuple[type, ...]) -> bool:
        """Whether `text` may come and is not `data`."""
        at = matcher.fork()
        events: list[ParseEvent] = []
        for token in tokens:
            if not at.allows(token):
                return False
            events += at.advance(token)
        pieces = [event for event in joined(events) if isinstance(event, Text | Content | Json)]
        return not any(isinstance(piece, data) and piece.data.endswith(text) for piece in pieces)
