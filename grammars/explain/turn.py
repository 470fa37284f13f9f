"""A whole turn explained: how far it is allowed, and what refuses the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from larksong.engine.engine import Engine
from larksong.engine.events import FunctionOpen
from larksong.engine.explain import LiveTerminal
from larksong.grammars.explain.blame import Wanted
from larksong.grammars.explain.request import Request
from larksong.grammars.explain.why import Why


@dataclass(frozen=True)
class TurnExplanation:
    """What is to be said of the tokens of a turn.

    `allowed`: all of them are. `complete`: the turn may end after them. `token`: the index of the one that
    is refused. `offset`: the bytes of the text, its markers' letters among them, that are in the grammar.
    `live`: the terminals that are being read there. `nearest`: ids of tokens that may come in the place of
    the refused one, or of an end that may not come yet. `wanted`: what refuses the token, or the end; empty
    where only the wire format or JSON itself does. `calls`: how many have begun in what is allowed.
    """

    allowed: bool
    complete: bool
    token: int | None
    offset: int
    live: tuple[LiveTerminal, ...] = ()
    nearest: tuple[int, ...] = ()
    wanted: tuple[Wanted, ...] = ()
    calls: int = 0


def explain_turn(request: Request, engine: Engine, tokens: Sequence[int]) -> TurnExplanation:
    """Explains a turn of token ids of the engine's vocabulary. Raises `GrammarsError` for a bad request."""
    vocabulary = engine.vocabulary
    matcher = engine.matcher(request.grammar(vocabulary))
    names = {token: name for name, token in vocabulary.special.items()}
    offset = calls = 0
    refused: int | None = None
    for index, token in enumerate(tokens):
        if matcher.finished or not matcher.allows(token):
            refused = index
            break
        calls += sum(isinstance(event, FunctionOpen) for event in matcher.advance(token))
        offset += len(vocabulary.tokens[token]) or len(names.get(token, "").encode())
    if refused is None and (matcher.finished or matcher.complete):
        return TurnExplanation(True, True, None, offset, calls=calls)
    if refused is None:
        before, rest = list(tokens), [min(vocabulary.eos_ids)]
    else:
        before, rest = list(tokens[:refused]), list(tokens[refused:])
    found = matcher.explain(rest[0])
    return TurnExplanation(
        allowed=refused is None,
        complete=False,
        token=refused,
        offset=offset + found.offset,
        live=found.live,
        nearest=found.nearest,
        wanted=Why(request, vocabulary).wanted(before, rest),
        calls=calls,
    )
