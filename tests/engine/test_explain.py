"""What the engine says of a token: allowed or not, the byte where it leaves, what is live, what is near."""

from __future__ import annotations

from larksong.engine.engine import Engine
from larksong.engine.explain import byte_vocabulary, live
from larksong.engine.grammar.terminals import Choice, JsonString, Literal, Role, Special
from larksong.engine.matcher import Matcher
from tests.support.grammars import grammar
from tests.support.masks import allowed
from tests.support.vocabularies import cut_with_markers, vocabulary

WORDS = vocabulary((b"red", b"green", b"gre", b"grey", b"=gr", b'"a', b"re"), ("<open>", "<close>"))
WHOLE = b"<open>=red<close><end>"
COLOURS = Choice((("red", 1), ("green", 2)))


def matcher() -> Matcher:
    made = grammar(
        "start: OPEN EQUALS COLOUR CLOSE | OPEN STRING CLOSE",
        {
            "OPEN": Special(frozenset({WORDS.special["<open>"]}), "<open>"),
            "CLOSE": Special(frozenset({WORDS.special["<close>"]}), "<close>"),
            "EQUALS": Literal("="),
            "COLOUR": (COLOURS, Role.JSON),
            "STRING": (JsonString(), Role.JSON),
        },
        WORDS,
    )
    return Engine(WORDS).matcher(made)


def token(text: bytes) -> int:
    (found,) = cut_with_markers(WORDS, text)
    return found


def at(text: bytes) -> Matcher:
    made = matcher()
    for each in cut_with_markers(WORDS, text):
        made.advance(each)
    return made


def test_every_token_is_explained_as_the_mask_has_it() -> None:
    for text in (
        b"",
        b"<open>",
        b"<open>=",
        b"<open>=gre",
        b'<open>"a',
        b"<open>=red",
        b"<open>=red<close>",
        WHOLE,
    ):
        here = at(text)
        may = allowed(here.mask())
        for each in range(WORDS.width):
            found = here.explain(each)
            assert found.allowed == (each in may), (text, each)
            assert set(found.nearest) <= set(may)
            assert found.nearest


def test_the_byte_is_told_at_which_a_token_leaves_the_grammar() -> None:
    assert at(b"<open>=").explain(token(b"grey")).offset == 3
    assert at(b"<open>").explain(token(b"=gr")).offset == 3
    assert at(b"<open>").explain(token(b"red")).offset == 0
    assert at(b"<open>=").explain(token(b"<close>")).offset == 0


def test_bytes_that_are_no_token_are_explained_too() -> None:
    found = at(b"<open>").explain(b"=greek")
    assert (found.allowed, found.offset) == (False, 5)
    assert at(b"<open>").explain(b"=green").allowed
    assert at(b"<open>").explain(b"").allowed


def test_live_terminals_have_the_names_and_the_text_of_the_grammar() -> None:
    found = at(b"<open>").explain(token(b"red")).live
    assert [(each.name, each.text) for each in found] == [("EQUALS", '"="'), ("STRING", JsonString().lark())]
    (colour,) = at(b"<open>").explain(b"=g").live
    assert (colour.name, colour.role, colour.text) == ("COLOUR", Role.JSON, '"red" | "green"')
    assert live(at(b"<open>=").configuration) == (colour,)


def test_the_nearest_tokens_begin_like_the_refused_one() -> None:
    nearest = at(b"<open>=").explain(token(b"grey")).nearest
    assert [WORDS.tokens[each] for each in nearest[:3]] == [b"green", b"gre", b"g"]


def test_after_a_fault_the_place_of_the_refusal_is_explained() -> None:
    here = at(b"<open>=")
    here.advance(token(b"grey"))
    assert here.fault is not None
    assert (here.explain(token(b"grey")).offset, here.explain(token(b"green")).allowed) == (3, True)


def test_explaining_changes_nothing() -> None:
    here = at(b"<open>=")
    before = here.mask()
    here.explain(token(b"grey"))
    here.explain(b"blue")
    assert here.fault is None
    assert here.mask() is before


def test_a_vocabulary_of_bytes_has_the_same_markers() -> None:
    twin, renamed = byte_vocabulary(WORDS)
    assert set(twin.special) == set(WORDS.special)
    assert {renamed[WORDS.special[name]] for name in WORDS.special} == set(twin.special.values())
    assert twin.eos_ids == {renamed[each] for each in WORDS.eos_ids}
    assert twin.tokens[:256] == tuple(bytes([byte]) for byte in range(256))
