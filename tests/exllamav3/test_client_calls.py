"""What forced tokens save on recorded calls of real clients, with the tokenizer of a real model."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tokenizers import Tokenizer

from larksong.grammars import CallPolicy, Tool, wire_format
from tests.exllamav3.folder import write_folder
from tests.exllamav3.rig import Rig
from tests.exllamav3.stand_in.model import scripted, silent

EVERY = int(os.environ.get("LARKSONG_EVERY", "8"))
"""Of so many recorded calls one is generated."""


@pytest.fixture(scope="module")
def cases() -> Path:
    folder = Path(os.environ.get("LARKSONG_CASES", "/nowhere"))
    if not (folder / "client_calls.jsonl").is_file():
        pytest.skip("LARKSONG_CASES does not name a folder with client_calls.jsonl")
    return folder


@pytest.fixture(scope="module")
def qwen(tmp_path_factory: pytest.TempPathFactory, qwen_tokenizer: Tokenizer) -> Iterator[Rig]:
    folder = tmp_path_factory.mktemp("models") / "qwen"
    rig = Rig(write_folder(folder, tokenizer=qwen_tokenizer, end="<|im_end|>"))
    yield rig
    rig.close()


@pytest.mark.parametrize("format", ["qwen3_coder", "hermes"])
def test_client_calls_take_at_least_30_percent_fewer_passes_with_the_same_text(
    qwen: Rig, cases: Path, format: str
) -> None:
    lines = (cases / "client_calls.jsonl").read_text().splitlines()
    calls = [json.loads(line) for line in lines[::EVERY]]
    wire = wire_format(format)
    prompt = qwen.ids("Do it.")
    passes = []
    for forced in (0, 16):
        generator = qwen.generator(forced=forced)
        texts = []
        qwen.model.forwards = 0
        for call in calls:
            tools = [
                Tool(spec["function"]["name"], parameters=spec["function"].get("parameters", {}))
                for spec in json.loads((cases / "client_tools" / f"{call['client']}.json").read_text())
            ]
            written = qwen.ids(wire.render_call(call["name"], call["arguments"]))
            qwen.model.policy = scripted(
                qwen.model.width,
                {tuple(prompt): [*written, qwen.end]},
                other=silent(qwen.model.width),
            )
            grammar = wire.grammar(tools, CallPolicy(required=True, max_calls=1), qwen.vocabulary)
            ours = qwen.filter(qwen.engine.matcher(grammar))
            (ran,) = qwen.run(
                generator, qwen.job("Do it.", ours, greedy=True, max_new_tokens=len(written) + 9)
            )
            assert ran.reason == "stop_token"
            assert ran.ids[:-1] == written
            texts.append(ran.ids)
        passes.append((qwen.model.forwards, texts))
    (plain, texts), (fewer, same) = passes
    assert texts == same
    print(f"{format}: {plain} passes, {fewer} with forced tokens: {1 - fewer / plain:.0%} fewer")
    assert fewer <= 0.7 * plain
