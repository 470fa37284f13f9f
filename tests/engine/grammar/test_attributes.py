"""Attributes: members in any order, none twice, none missing; items between two bounds."""

import itertools
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from larksong.engine.engine import Engine
from larksong.engine.grammar.attributes import (
    Carry,
    Close,
    CollectMembers,
    Count,
    CountItems,
    Items,
    Key,
    Member,
    Members,
    More,
    Pick,
    Seen,
)
from larksong.engine.grammar.terminals import Keys, Literal, Special
from larksong.engine.matcher import Matcher
from tests.support.examples import examples
from tests.support.grammars import grammar
from tests.support.masks import allowed
from tests.support.vocabularies import vocabulary

VOCABULARY = vocabulary()
(END_ID,) = VOCABULARY.eos_ids
ENGINE = Engine(VOCABULARY)


def object_matcher(names: str, required: str, *, is_open: bool = False) -> Matcher:
    """An object `{a,b}` whose members are letters; `x` stands for any name that is not declared."""
    bits = {name: 1 << i for i, name in enumerate(names)}
    members = Members(sum(bits[name] for name in required), sum(bits.values()), is_open, tuple(names))
    definitions: dict[str, object] = {"LB": Literal("{"), "RB": Literal("}"), "COMMA": Literal(",")}
    alternatives = []
    if names:
        definitions["KEY"] = Keys(tuple((name, Member(name, bit)) for name, bit in bits.items()))
        alternatives.append("KEY")
    if is_open:
        definitions["OTHER"] = Literal("x")
        alternatives.append("OTHER")
    rules = "start: " + " | ".join(
        [*([] if required else ["LB RB"]), *(["LB list RB"] if alternatives else [])]
    )
    if alternatives:
        rules += f"\nlist: member | list COMMA member\nmember: {' | '.join(alternatives)}"
    part = grammar(
        rules,
        definitions,  # type: ignore[arg-type]
        VOCABULARY,
        actions={"list": CollectMembers(members), "member": Pick(0)},
        predicates={"KEY": Key(), "OTHER": Key(), "COMMA": More(), "RB": Close()},
    )
    return ENGINE.matcher(part)


def array_matcher(minimum: int, maximum: int | None) -> Matcher:
    items = Items(minimum, maximum)
    shapes = [*([] if minimum else ["LS RS"]), *([] if maximum == 0 else ["LS list RS"])]
    rules = "start: " + " | ".join(shapes)
    if maximum != 0:
        rules += "\nlist: ITEM | list COMMA ITEM"
    part = grammar(
        rules,
        {"LS": Literal("["), "RS": Literal("]"), "COMMA": Literal(","), "ITEM": Literal("i")},
        VOCABULARY,
        actions={"list": CountItems(items)},
        predicates={"COMMA": More(), "RS": Close()},
    )
    return ENGINE.matcher(part)


def accepts(matcher: Matcher, text: str) -> bool:
    """Whether the whole turn is `text`; no mask on the way is empty."""
    matcher = matcher.fork()
    for byte in text.encode():
        assert allowed(matcher.mask())
        if not matcher.allows(byte):
            return False
        matcher.advance(byte)
    return matcher.complete


def texts(names: str, longest: int) -> Iterator[str]:
    for size in range(longest + 1):
        for chosen in itertools.product(names, repeat=size):
            yield "".join(chosen)


@pytest.mark.parametrize("required", ["", "a", "bc", "abc"])
@pytest.mark.parametrize("is_open", [False, True])
def test_members_come_in_any_order_once_each_and_the_required_ones_all(required: str, is_open: bool) -> None:
    matcher = object_matcher("abc", required, is_open=is_open)
    for written in texts("abcx", 4):
        declared = written.replace("x", "")
        expected = (
            len(set(declared)) == len(declared)
            and set(required) <= set(declared)
            and (is_open or "x" not in written)
        )
        assert accepts(matcher, "{" + ",".join(written) + "}") == expected, written


def test_an_object_without_members_is_empty() -> None:
    assert accepts(object_matcher("", ""), "{}")
    assert not accepts(object_matcher("", ""), "{x}")
    assert accepts(object_matcher("", "", is_open=True), "{x,x}")


@pytest.mark.parametrize(("minimum", "maximum"), [(0, None), (0, 0), (1, 1), (2, None), (0, 3), (2, 3)])
def test_items_keep_between_their_bounds(minimum: int, maximum: int | None) -> None:
    matcher = array_matcher(minimum, maximum)
    for size in range(7):
        expected = minimum <= size and (maximum is None or size <= maximum)
        assert accepts(matcher, "[" + ",".join("i" * size) + "]") == expected


@given(st.integers(1, 70), st.randoms(use_true_random=False))
@examples(20)
def test_there_may_be_more_members_than_a_machine_word_has_bits(size: int, rng: object) -> None:
    names = [chr(0x100 + i) for i in range(size)]
    required = names[::3]
    matcher = object_matcher("".join(names), "".join(required))
    order = names.copy()
    rng.shuffle(order)  # type: ignore[attr-defined]
    assert accepts(matcher, "{" + ",".join(order) + "}")
    assert not accepts(matcher, "{" + ",".join([*order[:-1], order[0]]) + "}") or size == 1
    assert accepts(matcher, "{" + ",".join(required) + "}")
    assert not accepts(matcher, "{" + ",".join(required[1:]) + "}")


def test_a_separator_is_refused_where_nothing_can_follow_it() -> None:
    matcher = object_matcher("a", "a")
    for byte in b"{a":
        matcher.advance(byte)
    assert allowed(matcher.mask()) == {ord("}")}


def test_predicates_and_actions_are_values() -> None:
    """Equal stacks must stay equal: nothing here depends on when or how often it is asked."""
    members = Members(0b01, 0b11, open=False, names=("a", "b"))
    collect = CollectMembers(members)
    assert collect(()) == Seen(members, 0)
    assert collect((1,)) == Seen(members, 1)
    assert collect((Seen(members, 1), 0, 2)) == Seen(members, 3)
    assert Key()(0, Seen(members, 1), Member("a", 1)) is None
    assert Key()(0, Seen(members, 1), Member("b", 2)) == 2
    assert Key()(None, None, Member("a", 1)) == 1
    assert Key()(0, Seen(members, 3), None) == 0  # a name that is not declared
    assert More()(Seen(members, 3), None, None) is None
    assert More()(Seen(members, 1), None, None) == 0
    assert Close()(Seen(members, 2), None, None) is None
    assert Close()(Seen(members, 1), None, None) == 0
    assert Carry()("top", "below", None) == "top"
    assert str(members) == "in any order, none twice; required: a"


def test_counts_saturate_where_more_items_make_no_difference() -> None:
    """Else every item of a long array would make configurations of its own."""
    items = Items(2, None)
    count = CountItems(items)
    first = count((None,))
    assert first == Count(items, 1)
    second = count((first, 0, None))
    assert second == count((second, 0, None)) == Count(items, 2)
    assert Items(0, None).cap == 0
    assert Items(1, 4).cap == 4


def test_the_end_of_a_turn_can_be_refused_too() -> None:
    end = Special(VOCABULARY.eos_ids, "<end>")
    part = grammar(
        "start: list STOP\nlist: ITEM | list ITEM",
        {"ITEM": Literal("i"), "STOP": end},
        VOCABULARY,
        actions={"list": CountItems(Items(2, 3))},
        predicates={"STOP": Close(), "ITEM": More()},
    )
    # `grammar` adds an end of its own behind STOP, so this turn ends with two.
    matcher = ENGINE.matcher(part)
    sizes = []
    for _ in range(3):
        matcher.advance(ord("i"))
        sizes.append(matcher.allows(END_ID))
    assert sizes == [False, True, True]
    assert allowed(matcher.mask()) == {END_ID}
