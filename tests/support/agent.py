"""An agent that runs on recorded turns, and how much of each prompt the model had read or written before."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from larksong.api.openai_chat.requests import turn_request
from larksong.api.openai_chat.responses import AnswerStyle, Totals, completion
from larksong.api.openai_chat.schemas import ChatRequest
from larksong.api.turns.generation import Model
from larksong.engine.backends.base import Generation
from larksong.engine.backends.encoding import text_ids
from larksong.grammars import wire_format
from tests.support.families import Family

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "edit",
            "description": "Edit a file.",
            "parameters": {
                "type": "object",
                "properties": {
                    "path": {"type": "string"},
                    "text": {"type": "string"},
                    "scale": {"type": "number"},
                    "all": {"type": "boolean"},
                    "lines": {"type": "array", "items": {"type": "integer"}},
                },
                "required": ["path"],
            },
        },
    },
    {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}},
]
_SCALE = 271828
"""stands for a number that is spelled as no JSON library spells it"""
ONE_CALL = {"harmony", "llama3_json"}
NO_TEXT = {"harmony", "llama3_json", "mistral_v3", "gemma4"}
"""formats whose models write calls alone, or text elsewhere"""


@dataclass(frozen=True)
class Reuse:
    """Tokens of a request's prompt and answer, and how many the next prompt begins with."""

    known: int
    reused: int

    @property
    def share(self) -> float:
        return self.reused / self.known


def turns(
    family: Family, count: int, *, texts: Sequence[int] = (), reasoning: bool = False, opened: bool = False
) -> list[str]:
    """What the model writes: text, calls with keys in any order, numbers in any spelling.

    `texts`: turns without calls. `opened`: the prompt has the marker that opens reasoning.
    """
    wire = wire_format(family.format)
    written = []
    for number in range(count):
        calls: list[tuple[str, dict[str, Any]]] = [
            (
                "edit",
                {
                    "scale": _SCALE,
                    "text": f"  x = {number}\n\tif 'é' < \"</b>\":\n",
                    "path": f"src/{number}.py",
                    "all": number % 2 == 0,
                    "lines": [3, number, 1],
                },
            )
        ]
        if number % 3 == 1 and family.format not in ONE_CALL:
            calls.append(("look", {}))
        text = wire.render_calls(calls).replace(str(_SCALE), "1.50E1")
        if number in texts:
            text = f"Part {number} is done."
            if family.format == "harmony":
                text = f"<|channel|>final<|message|>{text}"
        elif number % 2 and family.format not in NO_TEXT:
            text = f"Let me see, step {number}.\n{text}"
        if reasoning:
            text = thought(family, f"Step {number}: it must be there.", opened=opened) + text
        written.append(text)
    return written


def thought(family: Family, text: str, *, opened: bool) -> str:
    """Reasoning as the model writes it before its answer."""
    opener, closer = wire_format(family.format).reasoning or ("", "")
    if family.format == "gemma4":
        text = f"thought\n{text}"
    between = "<|start|>assistant" if family.format == "harmony" else "\n"
    return f"{'' if opened else opener}{text}{closer}{between}"


class _Watched:
    """Notes the prompts that a model's backend is given."""

    def __init__(self, model: Model) -> None:
        self.generations: list[Generation] = []
        generate = model.backend.generate

        def noted(generation: Generation) -> Any:
            self.generations.append(generation)
            return generate(generation)

        model.backend.generate = noted  # type: ignore[method-assign]


async def replay(
    family: Family,
    template: str,
    written: Sequence[str],
    *,
    users: Sequence[int] = (),
    reasoning_back: bool = False,
    system: bool = True,
) -> list[Reuse]:
    """Run the turns, each a request with everything before it; before those of `users` the user speaks."""
    probe = family.backend(template, *written)
    model = Model(probe, wire_format(family.format))
    watched = _Watched(model)
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Fix it."}]
    if system:
        messages.insert(0, {"role": "system", "content": "You edit files."})
    known: list[list[int]] = []
    for number, text in enumerate([*written, None]):
        if number in users:  # after an answer without calls
            messages.append({"role": "user", "content": f"And now part {number}."})
        body = {"model": "family", "messages": messages, "tools": TOOLS}
        request = turn_request(ChatRequest.model_validate(body), model.wire_format)
        turn = await model.prepare(request)
        prompt = list(watched.generations[-1].prompt)
        if text is None:
            known.append(prompt)
            break
        answer = await completion([turn], model, AnswerStyle(), Totals(0))
        message: dict[str, Any] = dict(answer["choices"][0]["message"])
        ids = [*text_ids(probe.tokenizer, probe.vocabulary, text), min(probe.vocabulary.eos_ids)]
        known.append([*prompt, *ids])
        if not reasoning_back:
            message.pop("reasoning_content", None)
        messages.append(message)
        for call in reversed(message.get("tool_calls", [])):
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": f"done {number}\n"})
    return [_reuse(family, model, before, after) for before, after in pairwise(known)]


def _reuse(family: Family, model: Model, before: Sequence[int], after: Sequence[int]) -> Reuse:
    """How much of `before` stands at the beginning of `after`; without reasoning where that was removed."""
    same = _common(before, after)
    if same < len(before):
        before, after = (_without_reasoning(family, model, ids) for ids in (before, after))
        same = _common(before, after)
    return Reuse(len(before), same)


def _common(before: Sequence[object], after: Sequence[object]) -> int:
    for at, (left, right) in enumerate(zip(before, after, strict=False)):
        if left != right:
            return at
    return min(len(before), len(after))


def _without_reasoning(family: Family, model: Model, ids: Sequence[int]) -> str:
    """The text of tokens without reasoning, its markers and the line breaks around it."""
    wire = wire_format(family.format)
    text = "".join(map(model.token_text, ids))
    if wire.reasoning is None:
        return text
    opener, closer = map(re.escape, wire.reasoning)
    if family.format == "harmony":
        text = re.sub(rf"{opener}.*?{closer}{re.escape('<|start|>assistant')}", "", text, flags=re.DOTALL)
    else:
        # Where a prompt or a turn ends inside reasoning, or has none, one of the markers is alone.
        text = re.sub(rf"{opener}.*?{closer}|{opener}|{closer}", "", text, flags=re.DOTALL)
    # Templates leave line breaks in the place of reasoning, or not.
    return text.replace("\n", "")
