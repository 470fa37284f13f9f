"""Answers held to a form beside OpenAI's: regular expressions, choices, Lark grammars; reasoning before them."""

from __future__ import annotations

from random import Random
from typing import Any

import httpx
import pytest

from larksong.engine.engine import Engine
from larksong.engine.packed import allows
from larksong.grammars import format_names, wire_format
from larksong.grammars.answers.constraints import choice_grammar, lark_grammar, regex_grammar
from larksong.grammars.answers.response_format import response_grammar
from larksong.grammars.errors import InvalidConstraint
from tests.api.serving import Served, serving
from tests.support.markers import BY_ID, BY_LETTERS
from tests.support.vocabularies import cut_with_markers, text_of

SUMS = """
start: sum
sum: NUMBER ("+" NUMBER)*
%import common.INT -> NUMBER
%ignore " "
"""
MARKERS = ("<tool_call>", "</tool_call>", "<think>", "</think>")


def ask(server: Served, **fields: Any) -> httpx.Response:
    body = {"model": "recorded", "messages": [{"role": "user", "content": "hi"}], **fields}
    return httpx.post(f"{server.client.base_url}chat/completions", json=body, timeout=30)


FORMS: list[tuple[dict[str, Any], str, str]] = [
    ({"guided_regex": r"[a-c]+-\d{2}"}, "abc-12", "abc-1x"),
    ({"structured_outputs": {"regex": r"[a-c]+-\d{2}"}}, "abc-12", "abc-1x"),
    ({"guided_choice": ["yes", "no", "not yet"]}, "not yet", "not so"),
    ({"structured_outputs": {"choice": ["yes", "no"]}}, "no", "yesno"),
    ({"guided_grammar": SUMS}, "1 + 23+4", "1 ++ 2"),
    ({"structured_outputs": {"grammar": SUMS}}, "7", "+7"),
    ({"guided_json": {"type": "integer"}}, "12", '"x"'),
    ({"guided_json": '{"type": "integer"}'}, "12", '"x"'),
    ({"structured_outputs": {"json": {"enum": [1, "a"]}}}, '"a"', "2"),
    ({"structured_outputs": {"json_object": True}}, '{"a": 1}', "[1]"),
    ({"regex_pattern": "a+"}, "aaa", "b"),
    ({"json_schema": {"type": "boolean"}}, "true", "1"),
]


@pytest.mark.parametrize(("fields", "fitting", "other"), FORMS)
@pytest.mark.parametrize("reasoning", ["", "<think>\nHm.\n</think>\n\n"])
def test_an_answer_follows_its_form(fields: dict[str, Any], fitting: str, other: str, reasoning: str) -> None:
    with serving(reasoning + fitting, reasoning + other, markers=MARKERS) as server:
        message = ask(server, **fields).json()["choices"][0]["message"]
        assert message["content"] == fitting
        assert message.get("reasoning_content", "").strip() == ("Hm." if reasoning else "")
        refused = ask(server, **fields)
    assert refused.status_code == 500  # recorded text that the mask would never let through
    assert "not allowed by the grammar" in refused.json()["error"]["message"]


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"guided_regex": "(a"}, "guided_regex"),
        ({"guided_regex": r"(a)\1"}, "guided_regex"),
        ({"guided_regex": r"[^\s\S]"}, "guided_regex"),
        ({"structured_outputs": {"choice": []}}, "structured_outputs.choice"),
        ({"guided_choice": ["a", ""]}, "guided_choice"),
        ({"guided_grammar": "start: a"}, "guided_grammar"),
        ({"guided_grammar": 'start: "a" start'}, "guided_grammar"),
        ({"guided_grammar": 'start: a | b\na: "x"\nb: "x"'}, "guided_grammar"),
        ({"guided_grammar": "%import .secrets.X\nstart: X"}, "guided_grammar"),
        ({"guided_json": "{"}, "guided_json"),
        ({"regex_pattern": "(a"}, "regex_pattern"),
        ({"json_schema": {"type": "text"}}, "json_schema#/type"),
        ({"custom_token_bans": [-1]}, "custom_token_bans"),
        ({"guided_json": {"type": "text"}}, "guided_json#/type"),
        ({"guided_regex": "a", "guided_choice": ["b"]}, "guided_choice"),
        ({"guided_regex": "a", "response_format": {"type": "json_object"}}, "guided_regex"),
    ],
)
def test_a_form_that_nothing_can_follow_is_refused(fields: dict[str, Any], param: str) -> None:
    with serving("x") as server:
        answer = ask(server, **fields)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)


@pytest.mark.parametrize("of", [BY_ID, BY_LETTERS], ids=["ids", "letters"])
@pytest.mark.parametrize("format", format_names())
def test_random_walks_through_reasoning_and_an_answer_never_get_stuck(format: str, of: Any) -> None:
    wire, engine = wire_format(format), Engine(of)
    schema = {"type": "object", "properties": {"a": {"type": "integer", "maximum": 99}}, "required": ["a"]}
    answers = [
        response_grammar(schema, of),
        choice_grammar(["yes", "no"], of),
        regex_grammar("[ab]{1,3}", of),
        lark_grammar(SUMS, of),
        None,
    ]
    rng = Random(format)
    for answer in answers:
        for in_reasoning in (False, True):
            grammar = wire.text_grammar(of, answer, in_reasoning=in_reasoning)
            assert grammar is wire.text_grammar(of, answer, in_reasoning=in_reasoning)
            matcher = engine.matcher(grammar)
            tokens: list[int] = []
            for step in range(200):
                mask = matcher.mask()
                allowed = [token for token in range(of.width) if allows(mask, token)]
                assert allowed, text_of(of, tokens)
                ends = [token for token in allowed if token in of.eos_ids]
                # Long texts are led to their end by the shortest way.
                if step > 30 and not ends:
                    narrowed = matcher.mask_within(matcher.needed())
                    allowed = [token for token in allowed if allows(narrowed, token)]
                token = ends[0] if step > 30 and ends else rng.choice(allowed)
                tokens.append(token)
                matcher.advance(token)
                assert matcher.fault is None
                if matcher.finished:
                    break
            assert matcher.finished, text_of(of, tokens)


def test_a_lark_grammar_takes_what_lark_takes() -> None:
    from lark import Lark
    from lark.exceptions import LarkError

    source = 'start: item ("," item)* | "(" start ")"\nitem: NAME "=" INT | NAME\nNAME: /[a-z]+/\n%import common.INT\n%ignore " "\n'
    oracle = Lark(source, parser="lalr")
    engine, grammar = Engine(BY_LETTERS), lark_grammar(source, BY_LETTERS)
    rng = Random(7)
    taken = 0
    for _ in range(300):
        text = "".join(rng.choice("ab=,()1 ") for _ in range(rng.randint(1, 7)))
        matcher = engine.matcher(grammar)
        for token in [*cut_with_markers(BY_LETTERS, text.encode()), min(BY_LETTERS.eos_ids)]:
            if not matcher.allows(token):
                break
            matcher.advance(token)
        try:
            oracle.parse(text)
            fits = True
        except LarkError:
            fits = False
        assert matcher.finished == fits, text
        taken += fits
    assert taken > 5


def test_a_pattern_that_is_too_much_says_so() -> None:
    with pytest.raises(InvalidConstraint, match="longer"):
        regex_grammar("a" * 70_000, BY_LETTERS)


# --- reasoning ---


def test_reasoning_stops_at_its_budget() -> None:
    text = "<think>\n" + "word " * 50 + "</think>\n\nThe answer."
    with serving(text, markers=MARKERS) as server:
        free = ask(server).json()
        cut = ask(server, thinking_budget=10).json()
    assert free["choices"][0]["message"]["reasoning_content"].count("word") == 50
    message = cut["choices"][0]["message"]
    assert 1 <= message["reasoning_content"].count("word") <= 10
    assert message["content"] == "The answer."
    assert cut["usage"]["completion_tokens_details"]["reasoning_tokens"] == 10


def test_the_budget_of_reasoning_in_letters_closes_it_too() -> None:
    text = "<think>\n" + "word " * 50 + "</think>\n\nThe answer."
    with serving(text) as server:
        message = ask(server, thinking_budget=8).json()["choices"][0]["message"]
    assert message["reasoning_content"].count("word") < 10
    assert message["content"] == "The answer."


def test_effort_and_template_variables_reach_the_template() -> None:
    from larksong.api.errors import ApiError
    from larksong.api.openai_chat.requests import template_variables
    from larksong.api.openai_chat.schemas import ChatRequest

    def variables(**fields: Any) -> dict[str, Any]:
        body = {"model": "m", "messages": [{"role": "user", "content": "x"}], **fields}
        return template_variables(ChatRequest.model_validate(body))

    assert variables() == {}
    assert variables(reasoning_effort="none")["enable_thinking"] is False
    assert variables(reasoning_effort="high") == {
        "reasoning_effort": "high",
        "enable_thinking": True,
        "thinking": True,
    }
    assert variables(reasoning_effort="low", chat_template_kwargs={"thinking": False})["thinking"] is False
    with pytest.raises(ApiError) as caught:
        variables(chat_template_kwargs={"messages": []})
    assert caught.value.param == "chat_template_kwargs.messages"
