"""Real coding agents do a job over the server: `make test-agents`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.clients.agents.director import directed
from tests.clients.agents.job import Job
from tests.clients.agents.kinds import AGENTS, Agent
from tests.clients.agents.running import run, script

pytestmark = pytest.mark.agents
FORMATS = ("qwen3_coder", "hermes", "harmony")
EACH = pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.name)


@EACH
@pytest.mark.parametrize("format", FORMATS)
def test_the_job_ends_with_the_right_bytes_on_disk(agent: Agent, format: str, tmp_path: Path) -> None:
    job = Job("alpha", tmp_path / "work")
    job.prepare()
    with directed(format) as server:
        server.director.scripts.append(script(agent, job, format))
        run(agent, server, job).check(job)
        assert not server.refused
