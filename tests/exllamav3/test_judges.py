"""Our masks beside kbnf's and llguidance's, on the same grammars; and the list of what is known of them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from random import Random
from typing import Any

import llguidance
import llguidance.numpy
import pytest
from exllamav3.generator.filter import formatron
from hypothesis import HealthCheck, Phase, assume, given, seed, settings
from hypothesis import strategies as st

from larksong.engine.grammar.export import export
from larksong.grammars import CallPolicy, GrammarsError, Tool, format_names, wire_format
from tests.exllamav3.folder import write_folder
from tests.exllamav3.judges import KbnfJudge, LLGuidanceJudge, differences, tokens_of
from tests.exllamav3.known_differences import KNOWN, Known
from tests.exllamav3.rig import Rig
from tests.support.schemas import parameters

GRAMMARS = int(os.environ.get("LARKSONG_JUDGED", "20"))
STEPS = 50
JSON_FORMATS = ("harmony", "hermes", "kimi_k2", "llama3_json", "mistral_v11", "mistral_v13", "mistral_v3")
RAW_FORMATS = tuple(sorted(set(format_names()) - set(JSON_FORMATS)))
POLICIES = (
    CallPolicy(required=True, min_calls=1, max_calls=1),
    CallPolicy(required=True, min_calls=1, max_calls=2),
    CallPolicy(required=True, min_calls=2, max_calls=3),
)


@pytest.fixture(scope="module")
def letters(tmp_path_factory: pytest.TempPathFactory) -> Rig:
    """A model whose tokenizer has no marker: the judges know text alone. Its end is no format's, either."""
    return Rig(write_folder(tmp_path_factory.mktemp("models") / "letters", markers=(), end="<|done|>"))


def test_masks_agree_with_kbnf_and_llguidance_at_every_step(letters: Rig) -> None:
    compare(letters, JSON_FORMATS, [KbnfJudge, LLGuidanceJudge], GRAMMARS)


def test_masks_of_raw_text_agree_with_kbnf_at_every_step(letters: Rig) -> None:
    # llguidance's lexer does not go back: see KNOWN.
    compare(letters, RAW_FORMATS, [KbnfJudge], GRAMMARS)


def compare(letters: Rig, formats: Sequence[str], judges: list[type[Any]], count: int) -> None:
    """Walk through `count` grammars of made-up tools with all judges."""
    grammars, steps = 0, 0

    # Without shrinking and stored examples, so that the number of grammars is what it says.
    @settings(
        max_examples=count,
        phases=[Phase.generate],
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @seed(20)
    @given(
        st.lists(parameters(), min_size=1, max_size=3),
        st.sampled_from(formats),
        st.sampled_from(POLICIES),
        st.integers(0, 2**32),
    )
    def walked(schemas: list[dict[str, object]], format: str, policy: CallPolicy, walk: int) -> None:
        nonlocal grammars, steps
        tools = [Tool(("read", "read_file", "other")[i], "", schema) for i, schema in enumerate(schemas)]
        try:
            grammar = wire_format(format).grammar(tools, policy, letters.vocabulary)
        except GrammarsError:
            assume(False)
        # What no context-free grammar can say is left out of the judges', and said so in its first lines.
        assume("not kept" not in export(grammar, "kbnf"))
        rng, left = Random(walk), STEPS
        while left:  # texts that are short are written more than once
            for found in differences(grammar, letters.tokenizer, letters.engine, judges, rng, left):
                assert isinstance(found, int), (format, found, schemas)
                steps += 1
                left -= 1
        grammars += 1

    walked()
    print(f"{grammars} grammars, {steps} steps compared with {', '.join(judge.name for judge in judges)}")
    assert grammars == count
    assert steps == STEPS * grammars


NODE = {
    "type": "object",
    "properties": {
        "value": {"type": "integer"},
        "children": {"type": "array", "items": {"$ref": "#/$defs/node"}},
    },
    "required": ["value"],
}
NAMES = ("a-b", "a_b", "a.b", "A_B", "start", "Größe", "日本", "*)")
VALUES = ('a"b', "*)", "(*", "\\", "\n", "é😀", "#", "'", "/", "{", "~", None, 1.5, [1, {"a": 2}])
FLAGS = {"type": "array", "items": {"type": "boolean"}, "minItems": 2, "maxItems": 5}
PAIR = {"prefixItems": [{"type": "string"}, {"type": "integer"}], "items": False, "minItems": 2}
ODD: tuple[dict[str, Any], ...] = (
    {"properties": {name: {"type": "integer"} for name in NAMES}},
    {"properties": {"text": {"enum": list(VALUES)}}},
    {"properties": {"fixed": {"const": {"a": [1, 2, "*)"]}}}},
    {"properties": {"tree": {"$ref": "#/$defs/node"}}, "$defs": {"node": NODE}},
    {"properties": {"any": {"anyOf": [{"type": "string"}, {"type": "integer"}, FLAGS]}}},
    {"properties": {"pair": {"type": "array", **PAIR}}},
)


@pytest.mark.parametrize("format", format_names())
def test_masks_of_odd_names_and_values_agree_too(letters: Rig, format: str) -> None:
    """Beside a second tool, whose texts end where those of the first do."""
    text = {"type": "object", "properties": {"p": {"type": "string"}}, "required": ["p"]}
    judges = [KbnfJudge, LLGuidanceJudge] if format in JSON_FORMATS else [KbnfJudge]
    for number, schema in enumerate(ODD):
        parameters = {"type": "object", "required": list(schema["properties"]), **schema}
        tools = [Tool("do-it", parameters=parameters), Tool("other_tool", parameters=text)]
        grammar = wire_format(format).grammar(tools, POLICIES[2], letters.vocabulary)
        for found in differences(
            grammar, letters.tokenizer, letters.engine, judges, Random(number), 2 * STEPS
        ):
            assert isinstance(found, int), (found, schema)


@pytest.mark.parametrize("known", KNOWN, ids=lambda known: f"{known.judge} after {known.text!r}")
def test_what_is_known_of_the_judges_is_still_so(letters: Rig, known: Known) -> None:
    ids = {data: token for token, data in enumerate(letters.vocabulary.tokens) if data}
    assert (ids[known.following] in _allowed(letters, known, ids)) == known.allowed, known.why


def _allowed(letters: Rig, known: Known, ids: dict[bytes, int]) -> set[int]:
    if known.judge == "kbnf":
        from formatron.integrations.utils import update_vocab_dot_G

        assert formatron._load_formatron()
        vocabulary = formatron.create_engine_vocabulary(letters.tokenizer, [update_vocab_dot_G])
        engine = formatron.kbnf.Engine(known.grammar, vocabulary)
        for byte in known.text:
            engine.try_accept_new_token(ids[bytes([byte])])
        if engine.is_finished():
            return set()
        engine.compute_allowed_token_ids()
        return set(engine.get_allowed_token_ids_from_last_computation())
    width = letters.tokenizer.config.vocab_size
    tokenizer = llguidance.LLTokenizer(
        letters.tokenizer.tokenizer.to_str(), n_vocab=width, eos_token=letters.end
    )
    matcher = llguidance.LLMatcher(
        tokenizer, llguidance.LLMatcher.grammar_from_lark(known.grammar), log_level=0
    )
    for byte in known.text:
        matcher.consume_token(ids[bytes([byte])])
    mask = llguidance.numpy.allocate_token_bitmask(1, width)
    llguidance.numpy.fill_next_token_bitmask(matcher, mask, 0)
    assert not matcher.get_error()
    return tokens_of(mask[0])


def test_a_difference_would_be_noticed(letters: Rig) -> None:
    """A judge that is given another grammar than ours."""
    tools = [
        Tool("read", "", {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]})
    ]
    other = [Tool("read", "", {"type": "object", "properties": {"a": {"type": "number"}}, "required": ["a"]})]
    grammar, wrong = (
        wire_format("hermes").grammar(each, POLICIES[0], letters.vocabulary) for each in (tools, other)
    )

    class Wrong(LLGuidanceJudge):
        def __init__(self, _: object, *rest: object) -> None:
            super().__init__(wrong, *rest)  # type: ignore[arg-type]

    found = list(differences(grammar, letters.tokenizer, letters.engine, [Wrong], Random(1), STEPS))
    assert any(not isinstance(each, int) for each in found)
