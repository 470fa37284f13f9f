"""Forced tokens: they are what the tokenizer makes of the text, whatever comes behind it."""

from collections.abc import Sequence
from itertools import product
from random import Random
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from larksong.engine.backends.encoding import text_ids
from larksong.engine.engine import Engine
from larksong.engine.grammar.terminals import Choice, Literal, Special
from larksong.engine.vocabulary import Vocabulary
from larksong.grammars import CallPolicy, Tool, wire_format
from tests.support.examples import examples
from tests.support.forced import Canon, Count, check
from tests.support.grammars import grammar
from tests.support.random_tools import grammar_of
from tests.support.schemas import instances, meaning, parameters
from tests.support.tokenizers import EOS, byte_fallback_tokenizer, byte_level_tokenizer
from tests.support.turns import CALLS, TOOLS, WEATHER, WRITE_FILE

REQUIRED = CallPolicy(required=True, reasoning=False)
ONE_CALL = CallPolicy(required=True, max_calls=1)
# Calls in JSON and in elements, markers by id and in letters, a section around the calls.
FORMATS = pytest.mark.parametrize(
    "format_name", ["hermes", "qwen3_coder", "glm_4_7", "kimi_k2", "mistral_v11", "deepseek_v4"]
)
NAMES = ["smollm2", "qwen", "byte_level", "byte_fallback", "dummy_prefix"]


@pytest.fixture(scope="module")
def canons() -> dict[str, Canon]:
    return {}


@pytest.fixture(scope="module", params=NAMES)
def canon(request: pytest.FixtureRequest, canons: dict[str, Canon]) -> Canon:
    return _canon(request.param, request, canons)


@pytest.fixture(scope="module", params=["smollm2", "qwen"])
def real(request: pytest.FixtureRequest, canons: dict[str, Canon]) -> Canon:
    """The tokenizers of real models."""
    return _canon(request.param, request, canons)


def _canon(name: str, request: pytest.FixtureRequest, known: dict[str, Canon]) -> Canon:
    if name not in known:
        match name:
            case "byte_level":
                tokenizer = byte_level_tokenizer()
                vocabulary = Vocabulary.from_tokenizer(tokenizer, eos=[EOS])
            case "byte_fallback" | "dummy_prefix":
                tokenizer = byte_fallback_tokenizer(dummy_prefix=name == "dummy_prefix")
                vocabulary = Vocabulary.from_tokenizer(tokenizer, eos=["</s>"])
            case _:
                tokenizer = request.getfixturevalue(f"{name}_tokenizer")
                vocabulary = request.getfixturevalue(f"{name}_vocabulary")
        known[name] = Canon.of(tokenizer, vocabulary)
    return known[name]


# -- rendered turns

HOSTILE = [
    *(
        "",
        " ",
        "  ",
        " x",
        "x ",
        "\n",
        "\n\n",
        "\n x",
        "\n  x\n",
        "\t",
        "=",
        ">",
        ">x",
        "</",
        "<",
        "'",
        "'s",
        "'re",
    ),
    *(
        '"',
        '"q"',
        '""',
        "\\",
        "\\n",
        "日",
        "日本語",
        "é",
        "ß\n",
        "😀",
        "👋🏽",
        "5",
        "12",
        "1234567",
        "0.5",
        ",",
        "}",
    ),
    *(
        "]",
        ":",
        ": ",
        "a" * 40,
        "=" * 70,
        "  " * 30,
        "</parameter>",
        "\n</parameter>",
        "\n</parameter>\n",
        "true",
    ),
    *(
        "null",
        "Path",
        "path",
        "_name",
        "-",
        "--x",
        "#",
        "# x\n",
        "e\u0301",
        "\u0338",
        "\u2028",
        "\r\n",
        "x\r\n y",
    ),
    *("</function>", "<parameter=x>", "\n</parameter>\n</p>", '{"a": 1}', "[1, 2]", "word " * 12),
]
_NESTED = {
    "type": "object",
    "properties": {
        "old": {"type": "string"},
        "old_text": {"type": "string"},
        "é": {"type": ["integer", "null"]},
    },
    "required": ["old", "old_text"],
    "additionalProperties": False,
}
# Names and fixed values that are cut in many ways: shared beginnings, digits, blanks, several scripts, runs.
STRESS = [
    Tool(
        "edit",
        "",
        {
            "type": "object",
            "properties": {
                "path": {"type": "string"},
                "old_string": {"type": "string"},
                "old": {"type": "string"},
                "new_string": {"type": "string"},
                "x1": {"type": "integer"},
                "x12": {"type": "boolean"},
                "日本語の名前": {"type": "string"},
                "日本": {"type": "null"},
                "days ahead": {"type": ["string", "integer"]},
            },
            "required": ["path", "old_string", "x1"],
            "additionalProperties": False,
        },
    ),
    Tool(
        "edit_many",
        "",
        {
            "type": "object",
            "properties": {
                "edits": {"type": "array", "items": _NESTED, "minItems": 1},
                "mode": {
                    "enum": [
                        "=" * 70,
                        "=" * 75,
                        "  a",
                        "  b",
                        "日本語",
                        "日本人",
                        "1234",
                        "1239",
                        "don't",
                        "don",
                    ]
                },
                "kind": {"const": "  only  this "},
                "naïve": {"const": [1, "a b"]},
            },
            "required": ["edits", "mode", "kind"],
            "additionalProperties": False,
        },
    ),
    Tool("read", "", {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}),
    Tool("ping", "", {"type": "object", "properties": {}}),
]


def hostile_arguments(tool: Tool, rng: Random) -> dict[str, Any]:
    """Arguments that the tool takes, members in any order."""
    declared = tool.parameters.get("properties", {})
    required = tool.parameters.get("required", [])
    names = [name for name in declared if name in required or rng.random() < 0.5]
    rng.shuffle(names)
    return {name: _hostile(declared[name], rng) for name in names}


def _hostile(schema: dict[str, Any], rng: Random) -> Any:
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return rng.choice(schema["enum"])
    kind = schema["type"] if isinstance(schema["type"], str) else rng.choice(schema["type"])
    match kind:
        case "string":
            return rng.choice(HOSTILE) + rng.choice(["", rng.choice(HOSTILE)])
        case "integer":
            return rng.choice([0, 7, -1, 12, 1999, 10**15])
        case "boolean":
            return rng.random() < 0.5
        case "array":
            return [_hostile(schema["items"], rng) for _ in range(rng.randint(1, 3))]
        case "object":
            tool = Tool("", "", schema)
            return hostile_arguments(tool, rng)
    return None


def total(counts: Sequence[Count]) -> Count:
    return Count(*map(sum, zip(*counts, strict=True)))


@FORMATS
def test_what_is_forced_is_what_the_tokenizer_writes(canon: Canon, format_name: str) -> None:
    written = wire_format(format_name)
    rng = Random(format_name)
    counts = []
    for policy in (REQUIRED, ONE_CALL, CallPolicy()):
        for tools in (STRESS, TOOLS):
            matcher = canon.engine.matcher(written.grammar(tools, policy, canon.vocabulary))
            for _ in range(40):
                tool = rng.choice(STRESS)
                calls = (
                    [(tool.name, hostile_arguments(tool, rng))] if tools is STRESS else [rng.choice(CALLS)]
                )
                text = written.render_calls(calls)
                counts.append(check(canon, matcher.fork(), canon.ids(text)))
    done = total(counts)
    assert done.offers > 1000
    assert done.tokens > 0.15 * done.of


@FORMATS
@given(data=st.data())
@examples(40)
def test_it_is_so_for_any_tool_and_values(real: Canon, format_name: str, data: st.DataObject) -> None:
    schema = data.draw(parameters(2))
    other = data.draw(parameters(1))
    tools = [
        Tool("get_weather", "", schema),
        Tool(data.draw(st.sampled_from(["get", "get_time", "x"])), "", other),
    ]
    arguments = data.draw(instances(meaning(schema, closed=True)))
    written = wire_format(format_name)
    matcher = real.engine.matcher(grammar_of(format_name, tools, REQUIRED, real.vocabulary))
    text = written.render_calls([("get_weather", arguments)] * 2)
    check(real, matcher, real.ids(text))


@FORMATS
def test_the_length_of_a_value_makes_no_difference(real: Canon, format_name: str) -> None:
    """Of what was sampled a few tokens are encoded, and inside a value none."""
    written = wire_format(format_name)
    wanted = written.grammar(STRESS, REQUIRED, real.vocabulary)
    counts = []
    for lines in (2, 60):
        engine, encoded = noting_engine(real)
        value = "a long line of text, with 12 words and more;\n" * lines
        call = written.render_call("edit", {"path": value, "x1": 1, "old_string": value})
        check(real, engine.matcher(wanted), real.ids(call))
        assert max(map(len, encoded)) < 200
        counts.append(len(encoded))
    assert counts[0] == counts[1]


# -- all texts of a grammar

WORDS = [
    *(
        "a",
        "ab",
        "abc",
        " a",
        "  a",
        " ",
        "  ",
        "\n",
        "\n\n",
        "\n a",
        "path",
        "pathname",
        "name",
        "=path",
        "=",
        "==",
        ">",
        ">\n",
    ),
    *(
        ">\n\n",
        "</",
        "<",
        "/",
        "parameter",
        "function",
        '"',
        '":',
        '": ',
        ': "',
        "1",
        "12",
        "123",
        "1234",
        "'",
        "'s",
        "s",
        "'re",
    ),
    *(
        "日",
        "日本",
        "本",
        "é",
        "É",
        "😀",
        "😃",
        "ing",
        "The",
        " the",
        "_",
        "__",
        ".py",
        ".",
        ",",
        ", ",
        "{",
        '{"',
        "}",
        "}}",
        "\t",
    ),
]


@st.composite
def word_grammars(draw: st.DrawFn) -> list[list[str]]:
    """Slots of a text, each with the words that it may hold; no word begins another of its slot."""
    slots = []
    for _ in range(draw(st.integers(1, 6))):
        pieces = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map("".join)
        words = draw(st.lists(pieces, min_size=1, max_size=draw(st.sampled_from([1, 1, 3])), unique=True))
        slots.append(
            [word for word in words if not any(word != other and word.startswith(other) for other in words)]
        )
    return slots


def slots_grammar(slots: list[list[str]], canon: Canon) -> Any:
    names = [f"SLOT_{number}" for number in range(len(slots))]
    definitions = {
        name: Literal(words[0]) if len(words) == 1 else Choice(tuple((word, None) for word in words))
        for name, words in zip(names, slots, strict=True)
    }
    return grammar("start: " + " ".join(names), definitions, canon.vocabulary)


@given(slots=word_grammars())
@example(slots=[["abc"], ["a", "path"]])  # ⟨ab⟩⟨ca⟩, but ⟨abc⟩⟨path⟩
@examples(150)
def test_every_text_of_a_grammar_agrees_with_what_was_forced(canon: Canon, slots: list[list[str]]) -> None:
    start = canon.engine.matcher(slots_grammar(slots, canon))
    for words in product(*slots):
        check(canon, start.fork(), canon.ids("".join(words)))


@given(
    slots=st.lists(
        st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map("".join), min_size=1, max_size=5
    )
)
@examples(60)
def test_a_text_without_any_choice_is_forced_whole(canon: Canon, slots: list[str]) -> None:
    text = "".join(slots)
    ids = canon.ids(text)
    if canon.vocabulary.decode(ids) != text.encode():
        return  # the tokenizer changes the text
    matcher = canon.engine.matcher(slots_grammar([[slot] for slot in slots], canon))
    assert matcher.forced() == tuple(ids[: None if len(canon.vocabulary.eos_ids) == 1 else -1])


# -- single facts


def forced_after(
    canon: Canon, text: str, format_name: str = "qwen3_coder", policy: CallPolicy = REQUIRED
) -> str:
    """What is forced behind the canonical tokens of `text`."""
    matcher = canon.engine.matcher(wire_format(format_name).grammar(STRESS, policy, canon.vocabulary))
    for token in canon.ids(text)[:-1]:
        matcher.advance(token)
        assert matcher.fault is None
    return canon.spelled(matcher.forced())


@pytest.fixture(scope="module")
def qwen(request: pytest.FixtureRequest, canons: dict[str, Canon]) -> Canon:
    return _canon("qwen", request, canons)


@pytest.fixture(scope="module")
def smollm2_canon(request: pytest.FixtureRequest, canons: dict[str, Canon]) -> Canon:
    return _canon("smollm2", request, canons)


def test_a_marker_that_is_a_token_is_forced(qwen: Canon) -> None:
    assert forced_after(qwen, "") == f"<{qwen.vocabulary.special['<tool_call>']}>|\n|<|function"


def test_a_token_that_could_grow_is_left_to_the_model(qwen: Canon) -> None:
    """`=` is not given since `=path` is one token; `>\\n` is not since a value may begin with a newline."""
    assert forced_after(qwen, "<tool_call>\n") == "<|function"
    assert forced_after(qwen, "<tool_call>\n<function=read") == ">\n|<|parameter|=path"
    assert forced_after(qwen, "<tool_call>\n<function=read>\n<parameter=path") == ""


def test_text_before_a_marker_is_given_whole(qwen: Canon) -> None:
    close = f"<{qwen.vocabulary.special['</tool_call>']}>"
    assert forced_after(qwen, "<tool_call>\n<function=ping") == f">\n|</|function|>\n|{close}"


def test_the_end_is_forced_when_nothing_else_may_come(smollm2_canon: Canon) -> None:
    (end,) = smollm2_canon.vocabulary.eos_ids
    call = wire_format("qwen3_coder").render_call("ping", {})
    assert forced_after(smollm2_canon, call, policy=ONE_CALL) == f"<{end}>"
    assert forced_after(smollm2_canon, call, policy=REQUIRED) == ""


def test_nothing_is_forced_inside_text(canon: Canon) -> None:
    call = wire_format("hermes").render_call("read", {"path": "a longer path"})
    matcher = canon.engine.matcher(wire_format("hermes").grammar(STRESS, REQUIRED, canon.vocabulary))
    inside = call.index("a longer")
    for token in canon.ids(call[: inside + 4])[:-1]:
        matcher.advance(token)
    assert matcher.forced() == ()


def test_without_a_tokenizer_only_special_tokens_are_forced(qwen: Canon) -> None:
    engine = Engine(qwen.vocabulary)
    marker = qwen.vocabulary.special["<tool_call>"]
    start = engine.matcher(wire_format("hermes").grammar(STRESS, REQUIRED, qwen.vocabulary))
    assert start.forced() == (marker,)
    literal = grammar(
        "start: A B C",
        {"A": Special(frozenset({marker}), "<tool_call>"), "B": Literal("some text"), "C": Literal("x")},
        qwen.vocabulary,
    )
    matcher = engine.matcher(literal)
    assert matcher.forced() == (marker,)
    matcher.advance(marker)
    assert matcher.forced() == ()


def test_a_character_is_never_cut(real: Canon) -> None:
    """`é` and `è` share their first byte: it is not given alone."""
    matcher = real.engine.matcher(slots_grammar([["caf"], ["é", "è"], ["!"]], real))
    assert b"".join(real.vocabulary.tokens[token] for token in matcher.forced()) in (b"", b"c", b"ca", b"caf")


def test_sampled_tokens_that_the_tokenizer_would_not_write_are_taken_as_they_are(real: Canon) -> None:
    """After `pa` the tokenizer would not begin a token with `th`; one token later it does again."""
    matcher = real.engine.matcher(slots_grammar([["parameters: "], ["1", "x"]], real))
    text_tokens = {token: id for id, token in enumerate(real.vocabulary.tokens)}
    matcher.advance(text_tokens[b"pa"])
    assert matcher.forced() == ()
    for piece in (b"ram", b"eters"):
        matcher.advance(text_tokens[piece])
    assert [real.vocabulary.tokens[token] for token in matcher.forced()] == [b":"]


def test_a_refused_token_forces_nothing(qwen: Canon) -> None:
    matcher = qwen.engine.matcher(wire_format("hermes").grammar(STRESS, REQUIRED, qwen.vocabulary))
    matcher.advance(0)
    assert matcher.fault is not None
    assert matcher.forced() == ()
    matcher.rollback(1)
    assert matcher.forced()[0] == qwen.vocabulary.special["<tool_call>"]


@FORMATS
def test_going_back_and_forking_keep_what_was_sampled(real: Canon, format_name: str) -> None:
    written = wire_format(format_name)
    ids = real.ids(written.render_call("edit", {"path": "日本", "old_string": "x", "x1": 3}))
    straight = real.engine.matcher(written.grammar(STRESS, REQUIRED, real.vocabulary))
    winding = straight.fork()
    for token in ids:
        fork = winding.fork()
        assert fork.forced() == winding.forced() == straight.forced()
        winding.advance(token)
        winding.rollback(1)
        assert winding.forced() == straight.forced()
        winding.advance(token)
        straight.advance(token)


def test_a_call_of_the_same_words_encodes_nothing_again(real: Canon) -> None:
    engine, encoded = noting_engine(real)
    written = wire_format("qwen3_coder")
    ids = real.ids(written.render_call("edit", {"path": "a.py", "old_string": "x", "x1": 3}))
    wanted = written.grammar(STRESS, REQUIRED, real.vocabulary)
    check(real, engine.matcher(wanted), ids)
    assert encoded
    encoded.clear()
    check(real, engine.matcher(wanted), ids)
    assert encoded == []


def noting_engine(canon: Canon) -> tuple[Engine, list[str]]:
    """An engine that has seen nothing yet, and the texts that it has encoded."""
    encoded: list[str] = []

    def encode(text: str) -> list[int]:
        encoded.append(text)
        return text_ids(canon.tokenizer, canon.vocabulary, text)

    return Engine(canon.vocabulary, encode=encode), encoded


@pytest.mark.parametrize("format", ["qwen3_coder", "hermes"])
def test_what_is_likely_begins_with_what_is_forced_and_is_mostly_right(
    format: str, byte_tokenizer: Tokenizer, byte_vocabulary: Vocabulary
) -> None:
    canon = Canon.of(byte_tokenizer, byte_vocabulary)
    offered = right = forced = 0
    for tool, arguments in (
        (WEATHER, {"city": "Amsterdam", "unit": "celsius", "days": 3}),
        (WRITE_FILE, {"path": "src/main.py", "content": "a < b\n</x>\n"}),
    ):
        grammar = wire_format(format).grammar([tool], CallPolicy(required=True, max_calls=1), byte_vocabulary)
        matcher = canon.engine.matcher(grammar)
        ids = canon.ids(wire_format(format).render_call(tool.name, arguments))
        for at, token in enumerate(ids):
            certain, likely = matcher.forced(), matcher.likely()
            assert likely[: len(certain)] == certain
            forced += len(certain)
            offered += len(likely)
            right += next(
                (i for i, (a, b) in enumerate(zip(likely, ids[at:], strict=False)) if a != b), len(likely)
            )
            matcher.advance(token)
        assert matcher.finished
    assert right >= forced
    assert right > 0.7 * offered
