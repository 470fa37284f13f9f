"""How parameters are written as elements of their own, and where their raw values end.

arg_name_prefix  name  arg_name_suffix  value  arg_value_suffix   …  function_close
<parameter=      city  >\n              Paris  \n</parameter>\n      </function>
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from larksong.engine.automata.text_until import Stop
from larksong.engine.grammar.grammar import Definition
from larksong.engine.grammar.terminals import Literal, Special
from larksong.engine.vocabulary import Vocabulary
from larksong.grammars.wire.markers import marker

# What models write for the words of JSON.
PYTHON_WORDS = {"true": "True", "false": "False", "null": "None"}


@dataclass(frozen=True)
class Elements:
    """What stands around names and values; see `ElementFormat` for each of its parts."""

    arg_name_prefix: str
    arg_name_suffix: tuple[str, ...]
    json_arg_name_suffix: tuple[str, ...] | None
    arg_value_suffix: tuple[str, ...]
    function_close: tuple[str, ...]
    suffix_overlap: str

    @property
    def tells_json(self) -> bool:
        """Whether what stands before a value says that it is JSON."""
        return self.json_arg_name_suffix is not None

    def name_suffix(self, is_text: bool) -> tuple[str, ...]:
        """What stands between a name and its value."""
        return self.arg_name_suffix if is_text else self.json_arg_name_suffix or self.arg_name_suffix


def merged(texts: Sequence[str], vocabulary: Vocabulary | None) -> list[Definition]:
    """The markers of `texts`; neighbours in letters are one."""
    found: list[Definition] = []
    markers: Iterable[Definition] = (marker(text, vocabulary) for text in texts)
    for is_token, group in groupby(markers, key=lambda each: isinstance(each, Special)):
        if is_token:
            found += group
        else:
            found.append(Literal("".join(each.text for each in group if isinstance(each, Literal))))
    return found


def letter_stops(of: Elements, vocabulary: Vocabulary | None = None) -> tuple[Stop, ...]:
    """Where a raw value ends whose suffix is letters: at the whole marker and what comes next.

    Where the next piece may not come (no parameter is left, or a required one is missing), it is refused as
    soon as its name stands there. Where what comes next is a token, the marker alone ends the value.
    """
    close = "".join(of.arg_value_suffix)
    following = (marker(text, vocabulary) for text in (of.arg_name_prefix, of.function_close[0]))
    if any(isinstance(each, Special) for each in following):
        return (Stop(close.encode(), ("PARAMETER_CLOSE",)),)
    function = close + of.function_close[0]
    return (
        Stop((close + of.arg_name_prefix).encode(), ("PARAMETER_CLOSE", "PARAMETER")),
        Stop(
            function.encode(),
            ("PARAMETER_CLOSE", "FUNCTION_CLOSE"),
            refused_from=len(function.encode()) - 1,
        ),
    )
