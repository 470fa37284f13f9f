"""The command line: `larksong serve | config | demo | chat | grammar | explain | check | parse | …`."""

from __future__ import annotations

import json
import logging
import math
import socket
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer
import uvicorn
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from larksong.api.commands.bench.command import bench
from larksong.api.commands.chat.command import chat
from larksong.api.commands.check import command as check
from larksong.api.commands.explain import command as explain
from larksong.api.commands.grammar import grammar
from larksong.api.commands.input import UnreadableTools, lines_of, listed_tools, read_json
from larksong.api.commands.model import checked, loaded
from larksong.api.http import logs
from larksong.api.offline.parse import parse_record
from larksong.api.runtime.readable_json import readable_json
from larksong.api.runtime.shutdown import KEEP_ALIVE_SECONDS, Server
from larksong.api.server import create_app
from larksong.api.settings.command_errors import fail
from larksong.api.settings.flags import load_settings, option, with_settings
from larksong.api.settings.settings import explained
from larksong.engine.backends.errors import ModelError
from larksong.engine.backends.model_store import find_model
from larksong.grammars import UnknownFormat, wire_format

app = typer.Typer(
    help="Tool calls that are valid by construction, streamed while the model writes them.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",  # which joins the lines of a paragraph
)
model_app = typer.Typer(help="The small model that `serve` and `demo` use by default.", no_args_is_help=True)
app.add_typer(model_app, name="model")
app.command()(bench)
app.command()(chat)
app.command("check")(check)
app.command("explain")(explain)
app.command("grammar")(grammar)


_ModelOption = Annotated[str | None, option("model")]
_FormatOption = Annotated[str | None, option("format")]
_FormatFileOption = Annotated[list[Path] | None, option("format_file")]


@app.command()
@with_settings
def serve(**flags: Any) -> None:
    """Serve a model over HTTP: chat completions, Anthropic's messages, responses, completions, metrics."""
    settings = load_settings(**flags)
    logs.set_up(settings.log_format, settings.log_level)
    checked(settings)
    place = _bound(settings.host, settings.port)  # before the model is loaded: that takes a while
    _tell("loading the model", model=settings.model, backend=settings.backend)
    model = loaded(settings)
    address = f"http://{_in_url(settings.host)}:{place.getsockname()[1]}"
    pages = {"inspector": f"{address}/inspector"} if settings.inspector else {}
    _tell("serving", model=model.name, url=f"{address}/v1", **pages)
    application = create_app([model], settings)
    server = Server(
        application,
        uvicorn.Config(
            application,
            host=settings.host,
            port=settings.port,
            log_config=None,
            access_log=False,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            # Answers end by themselves before; what else is left is cut off then.
            timeout_graceful_shutdown=math.ceil(settings.shutdown_seconds) + 2,
        ),
    )
    server.run(sockets=[place])
    if not server.started:
        raise typer.Exit(3)


@app.command()
@with_settings
def config(**flags: Any) -> None:
    """Print every setting as `serve` with the same flags would have it, and where its value came from."""
    settings = load_settings(**flags)
    given = {name for name, value in flags.items() if value is not None}
    table = Table("setting", "value", "from", box=None, pad_edge=False)
    for setting in explained(settings, given):
        table.add_row(*map(escape, setting))
    Console(width=None if sys.stdout.isatty() else 200).print(table)


@app.command()
def demo(
    model: _ModelOption = None, format: _FormatOption = None, format_file: _FormatFileOption = None
) -> None:
    """Watch a small model on this machine write tool calls, piece by piece.

    Starts a server on a free port and asks it through the openai package. The exit status is 0 if the calls
    that were asked for came and fit their schemas.
    """
    try:
        from larksong.api.commands.demo import run
    except ModuleNotFoundError as error:
        fail(f"the demo needs {error.name}: pip install 'larksong[demo]'")
    console = Console()
    settings = load_settings(model=model, format=format, format_file=format_file)
    with console.status(f"Loading {settings.model} …"):
        ready = loaded(settings)
    if not run(ready, console):
        raise typer.Exit(1)


@app.command()
def parse(
    format: Annotated[
        str | None,
        typer.Option(help="Standard input is the text of one turn in this wire format, not JSON lines."),
    ] = None,
    tools: Annotated[
        typer.FileText | None,
        typer.Option("--tools", help="JSON file with the tools of the request, where a line has none."),
    ] = None,
    format_file: _FormatFileOption = None,
) -> None:
    """Read what a model wrote: JSON lines in, JSON lines out; with --format, stdin is the text of one turn.

    A line: {"id", "format", "tools", "text" | "chunks" | "chunks_hex" | "token_ids" with "tokenizer",
    "build": "open" | "strict", "mode": "schema" | "compat", "prompt_tail", "finish": "stop" | "length"}.
    Each line gets one answer; what is wrong with it is an answer, too: {"error": "…"}.
    """
    load_settings(format_file=format_file)
    listed: list[Any] = []
    if tools is not None:
        try:
            _, listed = listed_tools(read_json(tools))
        except UnreadableTools as error:
            fail(str(error))
    if format is not None:
        try:
            wire_format(format)
        except UnknownFormat as error:
            fail(str(error))
        written = sys.stdin.buffer.read().decode(errors="replace")
        lines: Iterable[str] = [json.dumps({"format": format, "text": written})]
    else:
        lines = lines_of(sys.stdin)
    for line in filter(str.strip, lines):
        try:
            record = json.loads(line)
            found = parse_record({"tools": listed, **record} if isinstance(record, dict) else record)
        except json.JSONDecodeError as error:
            found = {"error": f"the line is not JSON: {error}"}
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            found = {"error": str(error)}
        typer.echo(readable_json(found))


@model_app.command()
def fetch() -> None:
    """Download the default model (93 MB), check it and convert it; prints where it lies."""
    try:
        typer.echo(find_model())
    except ModelError as error:
        fail(str(error))


def main() -> None:
    """The entry point of the `larksong` command."""
    app()


def _tell(message: str, **fields: object) -> None:
    logging.getLogger(__name__).info(message, extra={"fields": fields})


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _bound(host: str, port: int) -> socket.socket:
    """A socket that no other server can have; it listens once the server has started."""
    try:
        family, kind, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        bound = socket.socket(family, kind)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
    except OSError as error:
        fail(f"cannot serve at {host}, port {port} ({error.strerror}): choose others with --host, --port")
    return bound
