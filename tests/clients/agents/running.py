"""An agent's process, and the lines that it prints, each with the time at which it came."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.clients.agents.director import Directed, Director, Script
from tests.clients.agents.job import Job
from tests.clients.agents.kinds import Agent, node
from tests.support.agent import thought

# Nothing but the server can be reached.
_OFFLINE = {
    "HTTP_PROXY": "http://127.0.0.1:9",
    "HTTPS_PROXY": "http://127.0.0.1:9",
    "NO_PROXY": "127.0.0.1",
}
SECONDS = 180
"""after which an agent is ended"""


@dataclass
class Ran:
    """What an agent printed: (seconds of `time.monotonic`, line)."""

    lines: list[tuple[float, str]] = field(default_factory=list)
    errors: str = ""
    status: int | None = None

    @property
    def text(self) -> str:
        """Everything that it printed."""
        return "\n".join(line for _, line in self.lines)

    def events(self) -> list[tuple[float, dict[str, Any]]]:
        """The lines that are JSON objects."""
        return [(at, json.loads(line)) for at, line in self.lines if line.startswith("{")]

    def check(self, job: Job) -> None:
        """It ended well, said what the model reported, and did the job."""
        assert self.status == 0, f"{self.text[-3000:]}\n{self.errors[-3000:]}"
        job.check()
        assert job.report in self.text


def script(agent: Agent, job: Job, director: Director) -> Script:
    """The job in the agent's own calls, with words and reasoning before some."""
    format = director.family.format
    # harmony's models write one call a turn, and text elsewhere.
    alone = format == "harmony"
    look = [[call] for call in agent.look(job)] if alone else [agent.look(job)]
    about = thought(director.family, "I look first.", opened=False)
    leads = (about, "") if alone else (about + "Let me see.\n", "", "Well.\n", about)
    return Script(job, [*look, [agent.edit(job)], [agent.run(job.command)]], leads)


def run(agent: Agent, directed: Directed, job: Job) -> Ran:
    """Let the agent do the job; `job.folder` must be prepared, and the script known to the director."""
    home = job.folder.parent / f"home of {job.name}"
    home.mkdir()
    bin = home / "bin"
    bin.mkdir()
    (bin / "node").symlink_to(node())
    variables = {
        "PATH": f"{bin}:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(home),
        "LANG": "C.UTF-8",
        **_OFFLINE,
        **agent.variables(directed.origin, home),
    }
    return _process(agent.command(directed.origin, home, job), variables, job.folder)


def _process(command: Any, variables: dict[str, str], folder: Path) -> Ran:
    ran = Ran()
    with subprocess.Popen(
        [str(part) for part in command],
        cwd=folder,
        env=variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        errors = process.stderr
        reader = threading.Thread(target=lambda: setattr(ran, "errors", errors.read()))
        reader.start()
        # Agents start processes of their own: all of them end.
        ender = threading.Timer(SECONDS, os.killpg, (process.pid, signal.SIGKILL))
        ender.start()
        try:
            for line in process.stdout:
                ran.lines.append((time.monotonic(), line.rstrip("\n")))
            ran.status = process.wait()
        finally:
            ender.cancel()
            reader.join()
    return ran
