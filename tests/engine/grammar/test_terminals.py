"""What a terminal prints as Lark text is what its automaton matches."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lark import Lark

from larksong.engine.automata.text_until import Stop
from larksong.engine.grammar.attributes import Member
from larksong.engine.grammar.terminals import (
    Choice,
    JsonKey,
    JsonString,
    Keys,
    Literal,
    Pattern,
    Readable,
    Special,
    TextUntil,
)
from tests.support.dfas import matches
from tests.support.examples import examples

STOPS = (Stop(b"\n</p>\n<p=", ("X",)), Stop(b"\n</p>\n</f>", ("Y",)))

DEFINITIONS: list[Readable] = [
    Literal('a"b'),
    Literal("\\n\n/"),
    Literal("é😀"),
    Choice((("a", None), ("ab", None), ('"/\\', "x"))),
    Choice((("😀", None), ("é\n", None))),
    Pattern("-?(?:0|[1-9][0-9]{0,17})"),
    Pattern(", ?"),
    Pattern("a/b"),
    JsonString(),
    JsonString(0, 0),
    JsonString(1, 2),
    JsonString(2),
    JsonKey(()),
    JsonKey(("a", "a/b", 'q"', "é", "\n")),
]
TEXTS = [
    *(
        'a"b',
        "\\n\n/",
        "é😀",
        "😀",
        "é\n",
        "a",
        "ab",
        "abc",
        '"/\\',
        "0",
        "-17",
        "01",
        ", ",
        ",",
        ",  ",
        "a/b",
        "a\\/b",
        "",
    ),
    *(json.dumps(text) for text in ("", "a", "ab", "abc", "a/b", 'q"', "\n", "\x7f", "b")),
    *(json.dumps(text, ensure_ascii=False) for text in ("é", "é😀", "日本語")),
    *('"\\u0061"', '"\\/"', '"', '"a', '"a"b"', '"\\x"', '"\\n"', '"\x01"'),
]


def printed(text: str | None) -> re.Pattern[str]:
    """The regular expression that Lark makes of a printed terminal."""
    parser = Lark(f"start: X\nX: {text}\n", parser="lalr", lexer="basic")
    (terminal,) = parser.terminals
    return re.compile(terminal.pattern.to_regexp())


@pytest.mark.parametrize("definition", DEFINITIONS, ids=repr)
def test_a_printed_terminal_matches_what_its_automaton_does(definition: Readable) -> None:
    assert not isinstance(definition, Special)
    pattern, dfa = printed(definition.lark()), definition.dfa()
    found = [text for text in TEXTS if pattern.fullmatch(text)]
    assert found == [text for text in TEXTS if matches(dfa, text.encode())]
    assert found


@given(st.text(min_size=1, max_size=6))
@examples(200)
def test_any_text_prints_as_a_literal(text: str) -> None:
    assert printed(Literal(text).lark()).fullmatch(text)


@given(st.lists(st.text(min_size=1, max_size=4), min_size=1, max_size=3))
@examples(50)
def test_any_texts_print_as_a_choice_and_as_keys(texts: list[str]) -> None:
    choice = printed(Choice(tuple((text, None) for text in texts)).lark())
    keys = printed(Keys(tuple((text, Member(text, 1)) for text in texts)).lark())
    for text in texts:
        assert choice.fullmatch(text)
        assert keys.fullmatch(text)


TEXT_VALUES = ["", "a", "ab", "a\n</p>\nb", "\n", "日本"]


@pytest.mark.parametrize(
    "definition",
    [
        TextUntil(STOPS, before="\n"),
        TextUntil(STOPS, before="\n", minimum=1, maximum=2),
        TextUntil(STOPS, before="\n", minimum=2),
        TextUntil(STOPS, before="\n", maximum=0),
        TextUntil(STOPS[:1], before="\n"),
    ],
    ids=repr,
)
def test_printed_text_ends_before_its_stop(definition: TextUntil) -> None:
    """Lark's lexers know no empty terminals, so the empty value is the one that they cannot read."""
    pattern, dfa = printed(definition.lark()), definition.dfa()
    for value in TEXT_VALUES:
        for stop in definition.stops:
            text = value + stop.marker.decode()
            found = pattern.match(text)
            assert (found is not None and found.group() == value) == (
                value != "" and matches(dfa, text.encode())
            )


def test_printed_text_with_an_open_end_ends_before_its_stop_or_at_the_end() -> None:
    pattern = printed(TextUntil((Stop(b"<call>", ("CALL",)),), open_end=True, minimum=1).lark())
    found = [match.group() for text in ("hello", "hi\n<ca", "x<call>y") if (match := pattern.match(text))]
    assert found == ["hello", "hi\n<ca", "x"]


def test_text_without_a_stop_is_any_text() -> None:
    assert printed(TextUntil(open_end=True).lark()).fullmatch("any\n\x00 text")
    assert matches(TextUntil(open_end=True).dfa(), b"any\n\x00 text")


def test_definitions_of_one_content_are_equal() -> None:
    """What depends on a terminal alone is cached by its definition."""
    assert len({JsonString(1, 2), JsonString(1, 2), JsonString(1, 3)}) == 2
    assert TextUntil(STOPS, "\n").without(frozenset({0})) == TextUntil(STOPS, "\n", refused=frozenset({0}))
    assert TextUntil(STOPS, minimum=1, maximum=3).basis() == TextUntil(STOPS)
