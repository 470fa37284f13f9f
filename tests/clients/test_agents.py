"""Real coding agents do a job over the server: `make test-agents`."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from tokenizers import Tokenizer

from tests.clients.agents.director import TITLE, Turn, directed
from tests.clients.agents.job import Job
from tests.clients.agents.kinds import AGENTS, Agent, OpenCode, Pi
from tests.clients.agents.running import run, script

pytestmark = pytest.mark.agents
FORMATS = ("qwen3_coder", "hermes", "harmony")
EACH = pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.name)


@EACH
@pytest.mark.parametrize("format", FORMATS)
def test_the_job_ends_with_the_right_bytes_on_disk(
    agent: Agent, format: str, tmp_path: Path, qwen_tokenizer: Tokenizer
) -> None:
    job = Job("alpha", tmp_path / "work")
    job.prepare()
    with directed(format) as server:
        server.director.scripts.append(script(agent, job, server.director))
        run(agent, server, job).check(job)
        assert not server.refused
        prompts = [turn.prompt for turn in server.director.turns]
    sizes = [len(qwen_tokenizer.encode(prompt, add_special_tokens=False).ids) for prompt in prompts]
    print(f"\n{agent.name}, {format}: prompts of {', '.join(map(str, sizes))} tokens of Qwen's")


def _overlap(one: Turn, other: Turn) -> bool:
    return one.began < other.steps[-1] and other.began < one.steps[-1]


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize(
    "agent", [agent for agent in AGENTS if agent.shows_fragments], ids=lambda agent: agent.name
)
def test_arguments_are_shown_while_the_model_writes_them(agent: Agent, format: str, tmp_path: Path) -> None:
    job = Job("alpha", tmp_path / "work")
    job.prepare()
    with directed(format, tokens_per_second=30) as server:
        server.director.scripts.append(replace(script(agent, job, server.director), leads=[""]))
        ran = run(agent, server, job)
        ran.check(job)
        turns = server.director.turns
    [edit] = [index for index, turn in enumerate(turns) if turn.calls == [agent.edit(job)]]
    began, ended = turns[edit].steps[0], turns[edit].steps[-1]
    later = turns[edit + 1].began
    shown = [at for at, event in ran.events() if agent.fragment(event) and began <= at < later]
    share = (shown[-1] - shown[0]) / (ended - began)
    print(f"\n{agent.name}, {format}: {len(shown)} fragments in {share:.1%} of {ended - began:.1f} s")
    assert share >= 0.8


def test_two_agents_and_a_title_do_not_disturb_each_other(tmp_path: Path) -> None:
    agents = (OpenCode(), Pi())
    jobs = [Job(name, tmp_path / name / "work") for name in ("alpha", "beta")]
    with directed("qwen3_coder", tokens_per_second=40) as server, ThreadPoolExecutor(2) as pool:
        for agent, job in zip(agents, jobs, strict=True):
            job.prepare()
            server.director.scripts.append(script(agent, job, server.director))
        first = pool.submit(run, agents[0], server, jobs[0])
        while not server.director.turns and not first.done():  # it takes longer to start
            time.sleep(0.1)
        ran = [pool.submit(run, agents[1], server, jobs[1]).result(), first.result()]
        for each, job in zip(ran, reversed(jobs), strict=True):
            each.check(job)
        assert not server.refused
        turns = server.director.turns
    for each, job in zip(ran, jobs, strict=True):
        assert job.report not in each.text
    titles = [turn for turn in turns if turn.text.endswith(TITLE)]
    own, others = ([turn for turn in turns if turn.job == job and turn.calls] for job in jobs)
    assert len(titles) == 1
    assert any(_overlap(titles[0], turn) for turn in own)
    assert any(_overlap(one, other) for one in own for other in others)
