"""The conversation: messages there, streams back, calls shown while they grow, results asked for."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx
import openai
from rich.console import Console
from rich.live import Live
from rich.text import Text

from larksong.api.commands.chat.tools import ChatTool
from larksong.api.commands.demo_view import CallRecord, LastLines, StreamRecord, growing_answer
from larksong.api.runtime.printable import printable

with contextlib.suppress(ImportError):  # not everywhere
    import readline  # noqa: F401  input() edits lines with it, and knows those before

HELP = """\
/tools            the tools and their parameters
/choice WORD      auto, required, none, or the name of a tool: for the answers to what you say next
/new              forget the conversation
/quit             end, as does Ctrl-D; Ctrl-C stops an answer"""


class _CutCall(Exception):
    """An answer ended in the middle of a call."""


_MOST_ROUNDS = 16  # answers with calls, one after the other


@dataclass
class Talk:
    """One conversation. `run_all` runs tools unasked; `options`: further fields of the requests;
    `opening`: messages that every conversation begins with."""

    client: openai.OpenAI
    model: str
    tools: Sequence[ChatTool]
    console: Console
    choice: str = "auto"
    opening: Sequence[dict[str, Any]] = ()
    run_all: bool = False
    options: dict[str, Any] = field(default_factory=dict)
    messages: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin anew."""
        self.messages[:] = self.opening

    def loop(self) -> None:
        """Until the user ends it."""
        while True:
            try:
                said = input("you ▸ ").strip()
            except EOFError:
                self.console.line()
                return
            except KeyboardInterrupt:
                self.console.print("\n/quit ends the chat", style="dim")
                continue
            if said in ("/quit", "/exit"):
                return
            if said.startswith("/"):
                self.command(said)
            elif said:
                self.say(said)

    def command(self, line: str) -> None:
        """One line that begins with a slash."""
        word, _, rest = line.partition(" ")
        choices = ("auto", "required", "none", *(tool.name for tool in self.tools))
        if word == "/tools":
            for tool in self.tools:
                parameters = json.dumps(tool.spec["function"].get("parameters", {}), ensure_ascii=False)
                self.console.print(Text(printable(f"{tool.name}  {tool.description}"), style="bold"))
                self.console.print(Text(printable(parameters), style="dim"))
        elif word == "/choice" and rest.strip() in choices:
            self.choice = rest.strip()
            self.console.print(Text(f"tool_choice {self.choice}", style="dim"))
        elif word == "/choice":
            self.console.print(Text(f"/choice takes one of {', '.join(choices)}; it is {self.choice}"))
        elif word == "/new":
            self.forget()
            self.console.print("a new conversation", style="dim")
        else:
            if word != "/help":
                self.console.print(Text(printable(f"there is no command {word}; there are")))
            self.console.print(Text(HELP))

    def say(self, text: str) -> None:
        """A message of the user's, and answers until one has no calls. A failed one leaves no trace."""
        before = len(self.messages)
        self.messages.append({"role": "user", "content": text})
        choice = self.choice
        for _ in range(_MOST_ROUNDS):
            try:
                record = self.answer(choice)
                calls = list(record.calls.values())
                if record.is_cut and calls and not _is_json(calls[-1].arguments):
                    raise _CutCall
                self.messages.append(_as_message(record))
                for call in calls:
                    self.messages.append(
                        {"role": "tool", "tool_call_id": call.id, "content": self.result(call)}
                    )
            except (KeyboardInterrupt, EOFError):
                self.console.print("stopped; what was said last is forgotten", style="dim")
                del self.messages[before:]
                return
            except _CutCall:
                told = "the answer ended in the middle of a call; what was said last is forgotten"
                self.console.print(f"{told} (--max-tokens gives it more room)", style="red")
                del self.messages[before:]
                return
            # A server that is not Larksong, or one that ends, may send anything.
            except (openai.OpenAIError, httpx.HTTPError, ValueError) as error:
                self.console.print(Text(printable(reason(error)), style="red"))
                del self.messages[before:]
                return
            if not calls:
                return
            choice = "auto"  # calls that must come again and again would never end
        self.console.print(f"stopped after {_MOST_ROUNDS} answers with calls", style="dim")

    def answer(self, choice: str) -> StreamRecord:
        """The next message of the model, shown while it grows."""
        body: dict[str, Any] = {"stream_options": {"include_usage": True}, **self.options}
        if self.tools:
            names = {tool.name for tool in self.tools}
            body["tools"] = [tool.spec for tool in self.tools]
            body["tool_choice"] = (
                {"type": "function", "function": {"name": choice}} if choice in names else choice
            )
        record = StreamRecord()
        messages: Any = self.messages
        stream = self.client.chat.completions.create(
            model=self.model, messages=messages, stream=True, extra_body=body
        )
        try:
            with stream, Live(console=self.console, refresh_per_second=20) as live:
                try:
                    for chunk in stream:
                        record.add(chunk)
                        live.update(LastLines(growing_answer(record)))
                finally:
                    live.update(growing_answer(record))  # all of it, which Live leaves behind
        finally:
            if not self.console.is_terminal:
                self.console.line()  # Live ends its last line only on a terminal
        self.console.print(record.summary, style="dim")
        return record

    def result(self, call: CallRecord) -> str:
        """What a call gave: typed by hand, or the function's own."""
        tool = next((each for each in self.tools if each.name == call.name), None)
        if tool is None or tool.function is None:
            return input(f"result of {printable(call.name)} ▸ ")
        typed = "" if self.run_all else input(f"Enter runs {printable(call.name)}, or type its result ▸ ")
        if typed:
            return typed
        found = tool.run(call.arguments)
        self.console.print(Text(f"{printable(call.name)} ▸ {printable(found)}", style="green"))
        return found


def _as_message(record: StreamRecord) -> dict[str, Any]:
    calls = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in record.calls.values()
    ]
    message: dict[str, Any] = {"role": "assistant", "content": record.content or None}
    if calls:
        message["tool_calls"] = calls
    elif message["content"] is None:
        message["content"] = ""
    return message


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def reason(error: Exception) -> str:
    """What went wrong, in the server's words where it has some."""
    if isinstance(error, ValueError):
        return f"what the server sent cannot be read: {error}"
    body = getattr(error, "body", None)
    told = body.get("message") if isinstance(body, dict) else None
    return str(told or error or type(error).__name__)
