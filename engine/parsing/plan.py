"""What is forced in a configuration: found by `larksong.engine.forced`, kept with the configuration."""

from __future__ import annotations

from typing import NamedTuple

Tokens = tuple[int, ...]


class Plan(NamedTuple):
    """What is forced in a configuration, whatever was sampled before it.

    `parts`: texts and special tokens, in order. Of a text at the end only `fixed` bytes can be given;
    `probes` are texts that may come behind it, as far as they matter; `cuts`: the places in it where a token
    can begin that reaches over its end, and that end.
    """

    parts: tuple[bytes | int, ...]
    fixed: int
    probes: tuple[str, ...]
    cuts: tuple[int, ...]
    known: dict[Tokens, Tokens]
    """tokens sampled before → tokens to give"""
    likely: tuple[bytes | int, ...] = ()
    """`parts` and what is likely behind them: the rest of their text, of a marker that was begun"""
    guessed: dict[Tokens, Tokens] = {}  # noqa: RUF012 - every plan is given its own
