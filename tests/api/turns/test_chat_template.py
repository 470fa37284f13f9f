import re
from typing import Any

import pytest

from larksong.api.turns.chat_template import ChatTemplate, TemplateRefusal
from larksong.grammars import Tool, wire_format

HERMES = wire_format("hermes")
TOOLS = [
    Tool("get_weather", "Get the weather.", {"type": "object", "properties": {"city": {"type": "string"}}})
]

# The layout of SmolLM2-135M-Instruct's template: ChatML with a default system message and no tools.
PLAIN = """\
{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system
You are helpful.<|im_end|>
' }}{% endif %}{{'<|im_start|>' + message['role'] + '
' + message['content'] + '<|im_end|>' + '
'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant
' }}{% endif %}"""

CALL = {
    "id": "call_1",
    "type": "function",
    "function": {"name": "get_weather", "arguments": {"city": "Köln"}},
}


def _render(source: str | None, messages: list[dict[str, Any]], tools: list[Tool] = TOOLS) -> str:
    return ChatTemplate(source, bos_token="<s>", eos_token="</s>").render(messages, tools, HERMES)


def test_a_template_without_tools_gets_the_wire_formats_system_text() -> None:
    prompt = _render(PLAIN, [{"role": "user", "content": "hi"}])
    assert prompt == (
        f"<|im_start|>system\n{HERMES.system_text(TOOLS)}<|im_end|>\n"
        "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"
    )


def test_the_system_text_follows_the_requests_own_system_message() -> None:
    prompt = _render(PLAIN, [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"}])
    assert prompt.startswith(f"<|im_start|>system\nBe brief.\n\n{HERMES.system_text(TOOLS)}<|im_end|>\n")


def test_without_tools_the_template_is_left_alone() -> None:
    assert "You are helpful." in _render(PLAIN, [{"role": "user", "content": "hi"}], [])


def test_calls_and_results_become_text_where_the_template_knows_neither() -> None:
    prompt = _render(
        PLAIN,
        [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": "Let me see.", "tool_calls": [CALL, CALL]},
            {"role": "tool", "content": "rain", "tool_call_id": "call_1"},
            {"role": "tool", "content": "sun", "tool_call_id": "call_2"},
            {"role": "user", "content": "and?"},
        ],
        [],
    )
    call = HERMES.render_call("get_weather", {"city": "Köln"})
    assert prompt.endswith(
        f"<|im_start|>assistant\nLet me see.\n{call}\n{call}<|im_end|>\n"
        "<|im_start|>user\n<tool_response>\nrain\n</tool_response>\n"
        "<tool_response>\nsun\n</tool_response><|im_end|>\n"
        "<|im_start|>user\nand?<|im_end|>\n<|im_start|>assistant\n"
    )


def test_a_template_that_knows_tools_and_calls_gets_them_as_data() -> None:
    source = (
        "{{ bos_token }}{% for tool in tools %}{{ tool | tojson }}{% endfor %}"
        "{% for message in messages %}{% for call in message.tool_calls or [] %}"
        "{{ call.function.name }} {{ call.function.arguments | tojson }}{% endfor %}{% endfor %}"
        "{{ eos_token }}"
    )
    prompt = _render(source, [{"role": "assistant", "content": "", "tool_calls": [CALL]}])
    assert prompt == (
        '<s>{"type": "function", "function": {"name": "get_weather", "description": "Get the weather.", '
        '"parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}}'
        'get_weather {"city": "Köln"}</s>'
    )


def test_tojson_does_not_escape_html() -> None:
    assert (
        _render("{{ '<a & b>' | tojson }}{{ {'a': 1} | tojson(indent=1) }}", []) == '"<a & b>"{\n "a": 1\n}'
    )


def test_a_template_may_use_what_transformers_offers() -> None:
    loop = "{% for i in [1, 2] %}{{ i }}{% break %}{% endfor %}"
    source = "{% generation %}" + loop + "{% endgeneration %} {{ strftime_now('%Y') }}"
    assert re.fullmatch(r"1 \d{4}", _render(source, []))


@pytest.mark.parametrize(
    "source",
    ["{{ raise_exception('roles must alternate') }}", "{{ messages[0].content + 1 }}", "{{ a.b.c }}"],
)
def test_a_template_that_refuses_says_so(source: str) -> None:
    with pytest.raises(TemplateRefusal):
        _render(source, [{"role": "user", "content": "hi"}])


def test_a_template_cannot_reach_out_of_its_sandbox() -> None:
    with pytest.raises(TemplateRefusal):
        _render("{{ messages.__class__.__mro__ }}{{ messages.append(1) }}", [])


def test_without_a_template_the_layout_is_chatml() -> None:
    assert _render(None, [{"role": "user", "content": "hi"}], []) == (
        "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"
    )


APPENDS = """{% set kept = [] %}{% for message in messages %}{% set _ = kept.append(message) %}{% endfor %}\
{% set _ = messages[0].update({"content": "changed"}) %}{{ kept[0].content }} {{ kept | length }}"""


def test_a_template_may_change_lists_of_its_own_but_not_the_request() -> None:
    messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}]
    assert ChatTemplate(APPENDS).render(messages, (), HERMES) == "changed 2"
    assert messages[0]["content"] == "hi"
    with pytest.raises(TemplateRefusal):
        ChatTemplate("{% set _ = [].append(1) %}{{ messages.__class__.__mro__ }}").render(
            messages, (), HERMES
        )
