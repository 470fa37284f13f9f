"""Turns that the models' own chat templates write are turns of the strict grammars, with the same calls."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from larksong.api.turns.chat_template import _environment
from larksong.api.turns.deltas import CallDelta, ContentDelta, ReasoningDelta
from larksong.api.turns.emitter import DeltaEmitter
from larksong.engine.engine import Engine
from larksong.engine.events import ParseEvent
from larksong.engine.vocabulary import Vocabulary
from larksong.grammars import CallPolicy, GrammarsError, Tool, WireFormat, wire_format
from tests.support.client_calls import CLIENT_CALLS
from tests.support.markers import BY_ID, BY_LETTERS
from tests.support.templates import own_templates
from tests.support.vocabularies import cut_with_markers

CASES = os.environ.get("LARKSONG_CASES")
EVERY = int(os.environ.get("LARKSONG_EVERY", "4"))
RECORDED = {
    "Qwen3-Coder": "qwen3_coder",
    "Qwen3.5-4B": "qwen3_coder",
    "StepFun3.5-Flash": "qwen3_coder",
    "NVIDIA-Nemotron-3-Nano-30B-A3B-BF16": "qwen3_coder",
    "Qwen-Qwen2.5-7B-Instruct": "hermes",
    "Qwen-Qwen3-0.6B": "hermes",
    "NousResearch-Hermes-3-Llama-3.1-8B-tool_use": "hermes",
    "ibm-granite-granite-4.0": "hermes",
    "MiMo-VL": "hermes",
    "GLM-4.6": "glm_4_5",
    "GLM-4.7-Flash": "glm_4_7",
    "MiniMax-M2": "minimax_m2",
    "deepseek-ai-DeepSeek-V3.2": "deepseek_v3_2",
    "deepseek-ai-DeepSeek-V4": "deepseek_v4",
    "Kimi-K2-Instruct": "kimi_k2",
    "Kimi-K2-Thinking": "kimi_k2",
    "openai-gpt-oss-120b": "harmony",
    "mistralai-Mistral-Nemo-Instruct-2407": "mistral_v3",
    "Mistral-Small-3.2-24B-Instruct-2506": "mistral_v11",
    "unsloth-mistral-Devstral-Small-2507": "mistral_v13",
    "mistralai-Ministral-3-14B-Reasoning-2512": "mistral_v13",
    "meta-llama-Llama-3.1-8B-Instruct": "llama3_json",
    "meta-llama-Llama-3.3-70B-Instruct": "llama3_json",
    "google-gemma-4-31B-it": "gemma4",
    "google-gemma-4-31B-it-interleaved": "gemma4",
}


def templates() -> dict[str, tuple[str, str]]:
    """Wire format and source of our own templates, and of the recorded ones where they are there."""
    found = {f"our {name}": (name, source) for name, source in own_templates().items()}
    if CASES:
        for name, format in RECORDED.items():
            found[name] = format, (Path(CASES) / "templates" / f"{name}.jinja").read_text(encoding="utf-8")
    return found


TEMPLATES = templates()


def of(*formats: str) -> set[str]:
    """The recorded templates of these wire formats."""
    return {name for name, format in RECORDED.items() if format in formats}


ONE_CALL_A_TURN = {"our llama3_json"} | of("llama3_json", "harmony")
NO_CONTENT = {"our llama3_json", "our mistral_v3", "NousResearch-Hermes-3-Llama-3.1-8B-tool_use"}
NO_CONTENT |= of("mistral_v3", "mistral_v11", "llama3_json", "harmony", "gemma4")
NO_REASONING = {
    "our llama3_json",
    "our mistral_v3",
    "Qwen3-Coder",
    "Qwen-Qwen2.5-7B-Instruct",
    "Kimi-K2-Instruct",
}
NO_REASONING |= {"NousResearch-Hermes-3-Llama-3.1-8B-tool_use", "ibm-granite-granite-4.0", "MiMo-VL"}
NO_REASONING |= of("mistral_v3", "mistral_v11", "mistral_v13", "llama3_json", "harmony")
# What ends a turn in these templates; the backend's end-of-sequence token stands for it.
ENDS = (
    "<|im_end|>",
    "<eos>",
    "<|end_of_text|>",
    "<|eot_id|>",
    "[e~[",
    "<｜end▁of▁sentence｜>",
    "<turn|>",
    "<|tool_response>",
)
TURNS = [
    [("read", {"path": "src/häuser.py"})],
    [("write", {"path": "a b.txt", "content": "  x = 1\n\n\tif y:\n        return '</parameter>'\n"})],
    [("write", {"path": "empty", "content": ""}), ("read", {"path": "日本 🗼", "offset": 3, "limit": None})],
    [("edit", {"edits": [{"old": "a\nb", "new": ""}], "all": True, "scale": 0.5, "path": "p"}), ("ping", {})],
    [("ping", {})],
]
TOOLS = [
    Tool("read", "", {"type": "object", "properties": {
        "path": {"type": "string"}, "offset": {"type": "integer"}, "limit": {"type": ["integer", "null"]},
    }, "required": ["path"]}),
    Tool("write", "", {"type": "object", "properties": {
        "path": {"type": "string"}, "content": {"type": "string"},
    }, "required": ["path"]}),
    Tool("edit", "", {"type": "object", "properties": {
        "path": {"type": "string"}, "all": {"type": "boolean"}, "scale": {"type": "number"},
        "edits": {"type": "array", "items": {
            "type": "object", "properties": {"old": {"type": "string"}, "new": {"type": "string"}}, "required": ["old"],
        }},
    }}),
    Tool("ping", "", {"type": "object", "properties": {}}),
]  # fmt: skip


ENGINES = {of: Engine(of) for of in (BY_LETTERS, BY_ID)}

Calls = list[tuple[str, dict[str, Any]]]


def calls_for(template: str) -> list[tuple[Tool, dict[str, Any]]]:
    """Our own calls for our templates, for each recorded one every fourth recorded call, not all the same ones.

    `LARKSONG_EVERY=1`: every one.
    """
    if CASES is None or template not in RECORDED:
        return CLIENT_CALLS
    tools: dict[str, dict[str, Tool]] = {}
    for file in (Path(CASES) / "client_tools").glob("*.json"):
        functions = [each.get("function", each) for each in json.loads(file.read_text(encoding="utf-8"))]
        tools[file.stem] = {f["name"]: Tool(f["name"], "", f.get("parameters", {})) for f in functions}
    lines = (Path(CASES) / "client_calls.jsonl").read_text(encoding="utf-8").splitlines()
    calls = [json.loads(line) for line in lines[[*RECORDED].index(template) % EVERY :: EVERY]]
    return [(tools[call["client"]][call["name"]], call["arguments"]) for call in calls]


def rendered(name: str, calls: Calls, tools: list[Tool], content: str, reasoning: str) -> tuple[str, str]:
    """The prompt, and the assistant's turn as the template writes it."""
    template = _environment(mutable=True).from_string(TEMPLATES[name][1])
    message: dict[str, Any] = {
        "role": "assistant",
        "content": content,
        "tool_calls": [
            {"type": "function", "id": f"{i:09d}", "function": {"name": called, "arguments": arguments}}
            for i, (called, arguments) in enumerate(calls)
        ],
    }
    if reasoning:
        message["reasoning_content"] = reasoning
    variables = {
        "tools": [
            {"type": "function", "function": {"name": t.name, "description": "", "parameters": t.parameters}}
            for t in tools
        ],
        "bos_token": "",
        "eos_token": "<eos>",
        "thinking": bool(reasoning),
        "enable_thinking": bool(reasoning),
    }
    user = {"role": "user", "content": "Please."}
    prompt = template.render(messages=[user], add_generation_prompt=True, **variables)
    whole = template.render(messages=[user, message], add_generation_prompt=False, **variables)
    if not whole.startswith(prompt):
        # The generation prompt opens (or skips) reasoning, the turn in the history does not, or the reverse.
        shared = os.path.commonprefix([whole, prompt])  # noqa: RUF071 - texts, not paths
        for marker in ("<think>", "</think>", "\n", "<|channel>thought", "<|", "<"):
            shared = shared.removesuffix(marker)
        prompt = shared
    turn = whole[len(prompt) :].removeprefix("</think>")
    for end in ENDS:
        turn = turn.partition(end)[0]
    return prompt, turn


def told(events: list[ParseEvent]) -> tuple[str, str, Calls]:
    content = reasoning = ""
    calls: list[tuple[str, str]] = []
    for delta in DeltaEmitter().feed(events):
        match delta:
            case ContentDelta(text):
                content += text
            case ReasoningDelta(text):
                reasoning += text
            case CallDelta(_, _, name):
                calls.append((name, ""))
            case _:
                calls[delta.index] = (calls[delta.index][0], calls[delta.index][1] + delta.fragment)
    return content, reasoning, [(name, json.loads(arguments)) for name, arguments in calls]


def read(
    wire: WireFormat, of: Vocabulary, tools: list[Tool], prompt: str, turn: str
) -> tuple[str, str, Calls]:
    grammar = wire.grammar(tools, CallPolicy(), of, in_reasoning=wire.ends_in_reasoning(prompt))
    matcher = ENGINES[of].matcher(grammar)
    events: list[ParseEvent] = []
    for token in [*cut_with_markers(of, turn.encode()), min(of.eos_ids)]:
        events += matcher.advance(token)
        assert matcher.fault is None, (matcher.fault, turn)
    assert matcher.finished
    return told([*events, *matcher.finish()])


def written(name: str, calls: Calls, tools: list[Tool], content: str, reasoning: str) -> tuple[str, str]:
    """As `rendered`; Hermes 3's own template knows no lists of types, so it is shown no tools then."""
    try:
        return rendered(name, calls, tools, content, reasoning)
    except RecursionError:
        return rendered(name, calls, [], content, reasoning)


def check(template: str, calls: Calls, tools: list[Tool], content: str = "", reasoning: str = "") -> None:
    wire = wire_format(TEMPLATES[template][0])
    prompt, turn = written(template, calls, tools, content, reasoning)
    for of in (BY_LETTERS, BY_ID):
        said, thought, found = read(wire, of, tools, prompt, turn)
        assert [(name, in_order(value)) for name, value in found] == [
            (name, in_order(value)) for name, value in calls
        ]
        assert said.strip() == content
        assert thought.strip() == reasoning


def in_order(value: Any) -> Any:
    """Some templates sort members."""
    return json.loads(json.dumps(value, sort_keys=True))


@pytest.mark.parametrize("calls", TURNS, ids=range(len(TURNS)))
@pytest.mark.parametrize("template", TEMPLATES)
def test_a_turn_of_calls_as_the_template_writes_it_is_read_back(template: str, calls: Calls) -> None:
    if template in ONE_CALL_A_TURN:
        for call in calls:
            check(template, [call], TOOLS)
    else:
        check(template, calls, TOOLS)


@pytest.mark.parametrize("template", [name for name in TEMPLATES if name not in NO_CONTENT])
def test_content_before_calls_is_read_back(template: str) -> None:
    check(template, TURNS[0], TOOLS, content="I look at <it>.")


@pytest.mark.parametrize("template", [name for name in TEMPLATES if name not in NO_REASONING])
def test_reasoning_before_calls_is_read_back(template: str) -> None:
    check(template, TURNS[0], TOOLS, reasoning="Let me think.\nWell.")


@pytest.mark.parametrize("template", TEMPLATES)
def test_the_calls_of_coding_agents_are_read_back(template: str) -> None:
    checked = 0
    for tool, arguments in calls_for(template):
        try:
            wire_format(TEMPLATES[template][0]).grammar([tool], CallPolicy(), BY_ID)
        except GrammarsError:
            continue  # a keyword that the schema compiler does not take yet
        check(template, [(tool.name, arguments)], [tool])
        checked += 1
    assert checked
