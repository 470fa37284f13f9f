"""Regular expressions to byte automata, with Python's `re` as the oracle for the language."""

import json
import re
import string
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from larksong.engine.automata.dfa import DEAD, DFA
from larksong.engine.automata.product import is_empty
from larksong.engine.automata.regex import check_syntax, compile_regex
from larksong.engine.errors import InvalidPattern, UnsupportedPattern

EMAIL = r"^[a-zA-Z0-9_.+-]+@[a-zA-Z0-9-]+\.[a-zA-Z0-9-.]+$"
UUID = r"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"
DATE_TIME = (
    r"^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?"
    r"(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$"
)


def run(dfa: DFA, text: bytes) -> bool:
    state = dfa.start
    for byte in text:
        state = dfa.row(state)[byte]
        if state == DEAD:
            return False
    return dfa.accepts(state)


def found(pattern: str, text: str) -> bool:
    """Whether `pattern` matches somewhere in `text`, the same in both spellings of the text."""
    raw = run(compile_regex(pattern, anchored=False), text.encode())
    assert raw == run(compile_regex(pattern, anchored=False, json_string=True), in_json(text))
    return raw


def in_json(text: str) -> bytes:
    return json.dumps(text, ensure_ascii=False)[1:-1].encode()


def reachable(dfa: DFA, limit: int) -> list[int]:
    states = {dfa.start: None}
    pending = [dfa.start]
    while pending and len(states) <= limit:
        for target in set(dfa.row(pending.pop())) - {DEAD} - states.keys():
            states[target] = None
            pending.append(target)
    return list(states)


def dead_ends(dfa: DFA, states: list[int]) -> set[int]:
    """Those of all reachable `states` that lead to no accepting one."""
    live = {state for state in states if dfa.accepts(state)}
    while more := {state for state in states if state not in live and not live.isdisjoint(dfa.row(state))}:
        live |= more
    return set(states) - live


# Patterns as pairs: in ECMA-262's spelling, and in that of Python's `re` with the same meaning.
Pair = tuple[str, str]
PYTHON_SPACE = r"\t-\r \xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
ATOMS: list[Pair] = [
    *((char, char) for char in "ab01é日😀"),
    *(("\\" + char, re.escape(char)) for char in "/\\.*+?()[]{}|^$-"),
    ('"', '"'),
    (r"\n", r"\n"),
    (r"\u{1F600}", "😀"),
    (r"\uD83D\uDE00", "😀"),
    (r"\xe9", "é"),
    (r"\cJ", r"\n"),
    (r"(?:\0)", r"\x00"),
    (r"\d", "[0-9]"),
    (r"\D", "[^0-9]"),
    (r"\w", "[A-Za-z0-9_]"),
    (r"\W", "[^A-Za-z0-9_]"),
    (r"\s", f"[{PYTHON_SPACE}]"),
    (r"\S", f"[^{PYTHON_SPACE}]"),
    (".", r"[^\n\r\u2028\u2029]"),
    ("[^]", r"(?s:.)"),
    ("[]", r"(?!)"),
    ("[ab]", "[ab]"),
    ("[^a]", "[^a]"),
    ("[a-c0é-日]", "[a-c0é-日]"),
    (r"[^\w\s]", rf"[^A-Za-z0-9_{PYTHON_SPACE}]"),
    (r"[\d-a]", r"[0-9\-a]"),
    (r"[^\n\"\\]", r"[^\n\"\\]"),
    ("[[a]", r"[\[a]"),
]
QUANTIFIERS = ["*", "+", "?", "{2}", "{0}", "{0,2}", "{1,}", "{1,3}", "*?", "+?", "??", "{1,2}?"]


def longer(inner: st.SearchStrategy[Pair]) -> st.SearchStrategy[Pair]:
    several = st.lists(inner, min_size=2, max_size=4)
    return st.one_of(
        several.map(lambda pairs: ("".join(e for e, _ in pairs), "".join(p for _, p in pairs))),
        several.map(
            lambda pairs: (f"({'|'.join(e for e, _ in pairs)})", f"(?:{'|'.join(p for _, p in pairs)})")
        ),
        st.tuples(inner, st.sampled_from(QUANTIFIERS)).map(
            lambda pair: (f"(?:{pair[0][0]}){pair[1]}", f"(?:{pair[0][1]}){pair[1]}")
        ),
    )


def patterns(*more: Pair) -> st.SearchStrategy[Pair]:
    return st.recursive(st.sampled_from([*ATOMS, ("", ""), *more]), longer, max_leaves=7)


PLAIN = patterns()
WITH_ANCHORS = patterns(("^", r"\A"), ("$", r"\Z"))
SCALARS = st.characters(exclude_categories=["Cs"])
TEXTS = st.text(st.sampled_from('ab01-_/\\." \n\r\t\u2028\ufeff\x00\x1fé日😀^$') | SCALARS, max_size=8)


@given(WITH_ANCHORS, st.lists(TEXTS, min_size=4, max_size=8))
@settings(deadline=None)
def test_search_finds_what_re_finds(pattern: Pair, texts: list[str]) -> None:
    ecma, python = pattern
    dfa = compile_regex(ecma, anchored=False)
    for text in texts:
        assert run(dfa, text.encode()) == bool(re.search(python, text)), text


@given(WITH_ANCHORS, st.lists(TEXTS, min_size=4, max_size=8))
@settings(deadline=None)
def test_anchored_matches_what_re_matches_from_end_to_end(pattern: Pair, texts: list[str]) -> None:
    ecma, python = pattern
    dfa = compile_regex(ecma, anchored=True)
    for text in texts:
        assert run(dfa, text.encode()) == bool(re.fullmatch(python, text)), text


@given(PLAIN, st.lists(TEXTS, min_size=4, max_size=8), st.booleans())
@settings(deadline=None)
def test_inside_a_json_string_the_escaped_text_matches(
    pattern: Pair, texts: list[str], anchored: bool
) -> None:
    raw = compile_regex(pattern[0], anchored=anchored)
    escaped = compile_regex(pattern[0], anchored=anchored, json_string=True)
    for text in texts:
        assert run(raw, text.encode()) == run(escaped, in_json(text)), text


@given(WITH_ANCHORS, st.booleans(), st.booleans(), st.data())
@settings(deadline=None)
def test_every_way_through_the_automaton_is_a_text_that_re_matches(
    pattern: Pair, anchored: bool, json_string: bool, data: st.DataObject
) -> None:
    dfa = compile_regex(pattern[0], anchored=anchored, json_string=json_string)
    assume(not is_empty(dfa))
    state, path = dfa.start, bytearray()
    # From some length on the way is the shortest to an accepting state: there always is one.
    for _ in range(data.draw(st.integers(0, 20))):
        targets = {target: byte for byte, target in enumerate(dfa.row(state)) if target != DEAD}
        if not targets:
            break
        state = data.draw(st.sampled_from(sorted(targets)))
        path.append(targets[state])
    path += shortest_end(dfa, state)
    text = json.loads(b'"' + path + b'"') if json_string else path.decode()
    assert not json_string or in_json(text) == path
    assert (re.fullmatch if anchored else re.search)(pattern[1], text)


def shortest_end(dfa: DFA, state: int) -> bytes:
    paths = {state: b""}
    for reached in (pending := [state]):
        if dfa.accepts(reached):
            return paths[reached]
        for byte, target in enumerate(dfa.row(reached)):
            if target != DEAD and target not in paths:
                paths[target] = paths[reached] + bytes([byte])
                pending.append(target)
    raise AssertionError(f"no end from state {state}")


@given(WITH_ANCHORS, st.booleans(), st.booleans())
@settings(deadline=None)
def test_no_row_leads_to_a_dead_end(pattern: Pair, anchored: bool, json_string: bool) -> None:
    dfa = compile_regex(pattern[0], anchored=anchored, json_string=json_string)
    states = reachable(dfa, limit=300)
    assume(len(states) <= 300)
    assert dead_ends(dfa, states) <= ({dfa.start} if is_empty(dfa) else set())


@given(WITH_ANCHORS, st.binary(max_size=6), st.booleans())
@settings(deadline=None)
def test_bytes_that_are_not_utf8_are_never_accepted(pattern: Pair, data: bytes, anchored: bool) -> None:
    if run(compile_regex(pattern[0], anchored=anchored), data):
        data.decode()


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        (r"^\d$", "7", "٧"),
        (r"^\D$", "٧", "7"),
        (r"^\w$", "_", "é"),
        (r"^\W$", "é", "_"),
        (r"^\s$", "\ufeff", "\x1c"),  # white space for ECMA-262 and for Python alone
        (r"^\S$", "\x1c", "\ufeff"),
        (r"^\s$", "\v", "\x85"),
        (r"a$", "a", "a\n"),
        (r"^a", "ab", "\na"),
        (r"^.$", "\x85", "\u2028"),
        (r"^.$", "\v", "\r"),
        (r"^.$", "😀", "ab"),  # one code point, not two UTF-16 units
        (r"^a\/b$", "a/b", "a\\/b"),
        (r"^\cA\ca$", "\x01\x01", "cA"),
        (r"^\u0041\x42$", "AB", "ab"),
        (r"^\u{1F600}$", "😀", "u"),
        (r"^\ud83d\ude00$", "😀", "\ufffd"),
        (r"^[\u{1F600}-\u{1F610}]$", "😅", "\ufffd"),
        (r"^\0$", "\0", "0"),
        (r"^[\b]$", "\b", "b"),
        (r"^[^]$", "\n", ""),
        (r"^(a|[])$", "a", ""),
        (r"^(?<name>a)$", "a", "b"),
        (r"^a+?$", "aa", ""),
        (r"^a{2,3}?$", "aaa", "a"),
        (r"^a{,2}$", "a{,2}", "aa"),
        (r"^a{x}]}$", "a{x}]}", "a"),
        (r"^[a-]$", "-", "b"),
        (r"^[\w-.]$", "-", "+"),
        (r"^[\s\S]$", "\n", ""),
        (r"^\-\_\@\ $", "-_@ ", "\\-"),
        (r"^[[\]&&]$", "&", "a"),
        (r"^\p{Lu}$", "É", "é"),
        (r"^\P{Lu}$", "é", "É"),
        (r"^\p{L}$", "日", "1"),
        (r"^\p{gc=Nd}$", "٧", "a"),
        (r"^\p{General_Category=Nd}$", "٧", "a"),
        (r"^[\p{P}\d]$", "!", "a"),
        (r"^\p{ASCII}$", "~", "é"),
        (r"^\p{Any}$", "\U0010ffff", ""),
        (r"^(a|b)$", "b", "ab"),
        (r"(^a|b$)", "xb", "ba"),
        (r"^a|b$", "ax", "bx"),
        (r"^(a|b$)", "ax", "bx"),
        (r"x(^a|b$)", "xb", "xa"),
        (r"(^|,)a(,|$)", "b,a", "ba"),
        (r"^(?:$|a)", "", "b"),
        (r"$^", "", "a"),
        (r"", "anything", None),
        (r"b|a^c", "b", "ac"),
        (r"b|a$c", "b", "a\nc"),
        (r"^(?=.*[a-z])(?=.*\d).{4,}$", "abc1", "abcd"),
        (r"^(?=.*[a-z])(?=.*\d).{4,}$", "1234a", "1a"),
        (r"^(?!foo)[a-z]+$", "fo", "food"),
        (r"^(?!foo$)[a-z]+$", "food", "foo"),
        (r"^((?!-)[a-z-]+)$", "a-", "-a"),
        (r"^x-(?!internal)[a-z]+$", "x-intern", "x-internals"),
        (r"^(?=a|b)(?!ab).", "ba", "abc"),
        (r"^[^-](?!.*--)[a-z-]*$", "a-b-", "a--b"),
    ],
)
def test_ecma_262_meaning(pattern: str, yes: str, no: str | None) -> None:
    assert found(pattern, yes)
    assert no is None or not found(pattern, no)


@pytest.mark.parametrize("pattern", ["[]", "a^b", "a$b", r"[^\s\S]", "^(?=a)b", "^(?!a)a", "(a$b|c[])+"])
def test_a_pattern_that_nothing_matches_gives_an_empty_automaton(pattern: str) -> None:
    dfa = compile_regex(pattern, anchored=False)
    assert is_empty(dfa)
    assert set(dfa.row(dfa.start)) == {DEAD}


@pytest.mark.parametrize(
    ("pattern", "construct", "offset"),
    [
        (r"a\bc", r"word boundary \b", 1),
        (r"a\Bc", r"word boundary \B", 1),
        (r"(a)\1", r"back reference \1", 3),
        (r"(?<n>a)\k<n>", r"back reference \k", 7),
        (r"ab(?<=a)c", "look-behind", 2),
        (r"ab(?<!a)c", "look-behind", 2),
        (r"^a*(?=b)c", "look-ahead not at a fixed distance from the start", 3),
        (r"(?=b)c", "look-ahead not at a fixed distance from the start", 0),
        (r"^((?!a).)*$", "look-ahead not at a fixed distance from the start", 2),
        (r"^(?=a(?!b))", "look-ahead not at a fixed distance from the start", 5),
        (r"(?i)a", "group (?i", 0),
        (r"a(?P<n>b)", "group (?P", 1),
        (r"a(?>b)", "group (?>", 1),
        (r"a\p{Script=Greek}", r"property \p{Script=Greek}", 1),
        (r"\p{Alphabetic}", r"property \p{Alphabetic}", 0),
        (r"[\P{Foo}]", r"property \P{Foo}", 1),
        (r"a\pL", r"unknown escape \p", 1),
        (r"\Aa\Z", r"unknown escape \A", 0),
        (r"a\ux", r"unknown escape \u", 1),
        (r"a\01", r"octal escape \0", 1),
        (r"a\ud83d", "lone surrogate", 1),
        (r"a[\ud800-\udbff]", "class of lone surrogates", 1),
        (r"\u{110000}", r"no character \u{110000}", 0),
        ("a\\", "trailing backslash", 1),
        ("a++", "nothing to repeat", 2),
        ("*a", "nothing to repeat", 0),
        ("^*", "nothing to repeat", 1),
        ("a(?=b)*", "nothing to repeat", 6),
        ("(a", "unterminated group", 0),
        ("a)", "unmatched )", 1),
        ("a[b", "unterminated class", 1),
        ("x[b-a]", "range with its ends out of order in a class", 1),
        ("a{2,1}", "repetition with its bounds out of order", 1),
    ],
)
def test_what_is_refused_is_named_with_its_place(pattern: str, construct: str, offset: int) -> None:
    message = f"{construct} at offset {offset} of the pattern {pattern!r}"
    with pytest.raises(UnsupportedPattern, match=f"^{re.escape(message)}$"):
        compile_regex(pattern, anchored=False)


@pytest.mark.parametrize(
    "pattern",
    ["*a", "a|*", "(+)", "a**", "a{2}*", "(a", "a)", "a[b", "[b-a]", "a{2,1}", "a\\", "(?:a", "[\\"],
)
def test_what_no_dialect_can_read_is_invalid(pattern: str) -> None:
    with pytest.raises(InvalidPattern):
        compile_regex(pattern, anchored=False)
    with pytest.raises(InvalidPattern):
        check_syntax(pattern)
    with pytest.raises(re.error):
        re.compile(pattern)


@pytest.mark.parametrize(
    "pattern",
    ["a", r"(a)\1", "(?i)a", "(?P<n>b)", "a++", "^*", "{2}", "(?<=a)b", r"\Aa", "(" * 5000 + ")" * 5000],
)
def test_what_some_dialect_can_read_is_not_invalid(pattern: str) -> None:
    check_syntax(pattern)


def test_messages_show_the_beginning_of_a_long_pattern() -> None:
    with pytest.raises(InvalidPattern) as caught:
        check_syntax("a" * 10_000 + "(")
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    "pattern",
    [
        "((a{0,100}){0,100}){0,100}",
        "a{30000}",
        "(?:(?:){9999}|a){9999}",
        "(|){99999999}",
        "a{99999999999}",
        "a{" + "9" * 9999 + "}",
    ],
)
def test_repetitions_beyond_the_limit_are_refused_at_once(pattern: str) -> None:
    begin = time.thread_time()
    with pytest.raises(UnsupportedPattern, match="more than 20000"):
        compile_regex(pattern, anchored=True)
    assert time.thread_time() - begin < 30  # hundredths of a second; a collection of garbage may fall into it


def test_groups_nested_too_deeply_are_refused() -> None:
    with pytest.raises(UnsupportedPattern, match="nested too deeply"):
        compile_regex("(" * 5000 + ")" * 5000, anchored=True)


def test_max_states_bounds_the_nfa() -> None:
    compile_regex("a{90}", anchored=True, max_states=100)
    with pytest.raises(UnsupportedPattern, match="more than 100 NFA nodes"):
        compile_regex("a{60}|b{60}", anchored=True, max_states=100)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (EMAIL, "some.one+tag@mail.example.org"),
        (UUID, "123e4567-e89b-12d3-a456-426614174000"),
        (DATE_TIME, "2024-02-29T23:59:59.123Z"),
        (r"^(a+)+$", "a" * 5000),
        (r"(a|b)*a.{12}", "ab" * 300),
        (r"^.{0,1000}$", "é" * 1000),
        (r"^(?=.*[a-z])(?=.*[A-Z])(?=.*\d).{8,64}$", "Password1"),
        (r"^(\w+\s?)*$", "word " * 200),
        (r"^(b|$){3000}", "b"),
    ],
)
def test_a_pattern_is_compiled_and_run_within_a_moment(pattern: str, text: str) -> None:
    begin = time.thread_time()
    assert run(compile_regex(pattern, anchored=False, json_string=True), in_json(text))
    assert time.thread_time() - begin < 30  # tens of milliseconds, the largest some hundred


def test_states_are_made_only_where_a_text_leads() -> None:
    dfa = compile_regex("^(a|b)*a[ab]{12}$", anchored=False)
    assert run(dfa, b"a" * 13)
    assert max(max(dfa.row(state)) for state in reachable(dfa, limit=50)[:20]) < 200


def test_anything_goes_on_as_one_state_once_a_search_has_found() -> None:
    dfa = compile_regex("foo", anchored=False)
    after = dfa.start
    for byte in b"foo":
        after = dfa.row(after)[byte]
    assert {dfa.row(after)[byte] for byte in string.printable.encode()} == {after}


def test_threads_see_one_automaton() -> None:
    pattern = r"^([a-z]+\d{2,5}|[é-日]{3,9}|(x|y)*x.{6})$"
    words = ["abc123", "xyxyxyxyxyx", "日本語", "ééé", "x" * 9]
    dfa = compile_regex(pattern, anchored=False)
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda word: run(dfa, word.encode()), words * 200))
    assert results == [bool(re.search(pattern, word)) for word in words] * 200
    assert not dead_ends(dfa, reachable(dfa, limit=5000))
