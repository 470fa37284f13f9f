"""The next turn's prompt begins with what the model has read and written: nothing is read twice."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from larksong.grammars import wire_format
from tests.support.agent import Reuse, replay, turns
from tests.support.families import FAMILIES, Family

TURNS = 10
# These open reasoning in the prompt.
OPENED = {"Qwen3.5-4B", "GLM-4.7-Flash", "MiniMax-M2"}
# These put tools, or the system message, before the last message of the user, wherever it is: only what lies
# between two messages of the user can be stable.
MOVING = {"mistralai-Mistral-Nemo-Instruct-2407", "Mistral-Small-3.2-24B-Instruct-2506"}
NO_REASONING = {"mistral_v3", "mistral_v11", "llama3_json"}

# It does to calls what the models' own templates do: sorts members, changes blanks, trims text.
REWRITING = """\
{%- for message in messages %}{{ '[' ~ message.role ~ ']\\n' }}
{%- if message.reasoning_content %}{{ '(' ~ message.reasoning_content ~ ')' }}{% endif %}
{{- message.content | trim }}
{%- for call in message.tool_calls or [] %}
{{- call.function.name ~ ' ' ~ (call.function.arguments | tojson(sort_keys=true, indent=1)) }}
{%- endfor %}{{ eos_token }}{% endfor %}
{%- if add_generation_prompt %}{{ '[assistant]\\n' }}{% endif %}"""
ONE_EACH = {family.format: family for family in FAMILIES}


def template(family: Family) -> str:
    folder = os.environ.get("LARKSONG_CASES")
    if not folder:
        pytest.skip("LARKSONG_CASES does not name a folder of recorded cases")
    return (Path(folder) / "templates" / f"{family.template}.jinja").read_text()


def share(reuses: list[Reuse]) -> float:
    assert len(reuses) == TURNS
    return sum(each.reused for each in reuses) / sum(each.known for each in reuses)


async def run(family: Family, source: str, *, reasoning: bool) -> float:
    moving = family.template in MOVING
    written = turns(
        family,
        TURNS,
        texts=() if moving else (4, 7),
        reasoning=reasoning,
        opened=family.template in OPENED,
    )
    users = () if moving else (5, 8)
    return share(await replay(family, source, written, users=users, system=not moving))


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.template)
@pytest.mark.parametrize("reasoning", [False, True], ids=["", "reasoning"])
async def test_ten_turns_are_read_once_with_the_models_own_template(
    family: Family, reasoning: bool, record_property: pytest.RecordProperty
) -> None:
    if reasoning and family.format in NO_REASONING:
        pytest.skip("the family does not reason")
    if not reasoning and family.template in OPENED:
        pytest.skip("the prompt begins with reasoning")
    source = template(family)
    markers = wire_format(family.format).reasoning or ()
    if reasoning and not any(marker in source for marker in markers) and family.format != "harmony":
        pytest.skip("the template knows no reasoning, so the model may not begin with it")
    reused = await run(family, source, reasoning=reasoning)
    record_property("reused", reused)
    print(f"{family.format}, {family.template}: {reused:.2%}")
    assert reused >= 0.99


@pytest.mark.parametrize("format", ONE_EACH)
async def test_ten_turns_are_read_once_whatever_the_template_does_to_calls(format: str) -> None:
    family = ONE_EACH[format]
    written = turns(family, TURNS, texts=(4, 7))
    assert share(await replay(family, REWRITING, written, users=(5, 8))) >= 0.99


async def test_a_call_that_the_client_changed_is_written_anew() -> None:
    from larksong.api.turns.call_memory import CallMemory, WrittenCall, WrittenTurn

    memory = CallMemory()
    call = WrittenCall("call_1", "edit", '{"path": "a", "scale": 1.50E1}')
    memory.keep(WrittenTurn("h", (1, 2), 0, "", "Look.", (call,)))

    def told(**changes: object) -> bool:
        function = {"name": "edit", "arguments": {"scale": 15.0, "path": "a"}, **changes}
        message = {"content": "Look.\n", "tool_calls": [{"id": "call_1", "function": function}]}
        return memory.find(message) is not None

    assert told()
    assert not told(name="look")
    assert not told(arguments={"scale": 15.5, "path": "a"})


def test_every_format_has_a_family() -> None:
    assert {"qwen3_coder", "hermes", "glm_4_5", "glm_4_7", "minimax_m2", "deepseek_v3_2", "deepseek_v4"} | {
        *("kimi_k2", "harmony", "mistral_v3", "mistral_v11", "mistral_v13", "llama3_json", "gemma4")
    } == set(ONE_EACH)
    assert all(wire_format(name).name == name for name in ONE_EACH)
