"""The command line: `larksong serve | config | demo | chat | grammar | check | explain | parse | bench …`."""

from __future__ import annotations

import json
import math
import sys
from enum import StrEnum
from typing import Annotated, Any

import typer
import uvicorn
from pydantic import TypeAdapter, ValidationError
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from larksong.api import logs
from larksong.api.bench_command import bench
from larksong.api.chat_requests import tool
from larksong.api.chat_terminal.command import chat
from larksong.api.check import command as check
from larksong.api.command_line import fail, fail_validation, loaded, settings_of
from larksong.api.explain import command as explain
from larksong.api.parse import parse_record
from larksong.api.schemas import ToolSpec
from larksong.api.server import create_app
from larksong.api.settings import explained
from larksong.api.settings_flags import option, with_settings
from larksong.engine.backends.errors import ModelError
from larksong.engine.backends.model_store import find_model
from larksong.engine.characters import TooManyStates
from larksong.engine.expand import expand
from larksong.engine.export import export
from larksong.engine.vocabulary import Vocabulary
from larksong.grammars import CallPolicy, GrammarsError, wire_format
from larksong.grammars.response_format import response_grammar

app = typer.Typer(
    help="Tool calls that are valid by construction, streamed while the model writes them.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
model_app = typer.Typer(help="The small model that `serve` and `demo` use by default.", no_args_is_help=True)
app.add_typer(model_app, name="model")
app.command()(bench)
app.command()(chat)
app.command("check")(check)
app.command("explain")(explain)


class Target(StrEnum):
    """The languages that `larksong grammar` prints."""

    LARK = "lark"
    KBNF = "kbnf"
    GBNF = "gbnf"
    LLGUIDANCE = "llguidance"


# A vocabulary of no model: no marker is a token of its own, so that all of them are printed as text.
_BYTES = Vocabulary(
    tokens=(*(bytes([byte]) for byte in range(256)), b""),
    special={"<end>": 256},
    eos_ids=frozenset({256}),
    width=257,
)


_ModelOption = Annotated[str | None, option("model")]
_FormatOption = Annotated[str | None, option("format")]


@app.command()
@with_settings
def serve(**flags: Any) -> None:
    """Serve a model over HTTP: chat completions, completions, tokens, health and metrics."""
    settings = settings_of(**flags)
    logs.set_up(settings.log_format, settings.log_level)
    served = loaded(settings)
    uvicorn.run(
        create_app([served], settings),
        host=settings.host,
        port=settings.port,
        log_config=None,
        access_log=False,
        # Streams end by themselves before; what else is left is cut off then.
        timeout_graceful_shutdown=math.ceil(settings.shutdown_seconds) + 1,
    )


@app.command()
@with_settings
def config(**flags: Any) -> None:
    """Print every setting as `serve` with the same flags would have it, and where its value came from."""
    settings = settings_of(**flags)
    given = {name for name, value in flags.items() if value is not None}
    table = Table("setting", "value", "from", box=None, pad_edge=False)
    for setting in explained(settings, given):
        table.add_row(*map(escape, setting))
    Console(width=None if sys.stdout.isatty() else 200).print(table)


@app.command()
def demo(model: _ModelOption = None, format: _FormatOption = None) -> None:
    """Watch a small model on this machine write tool calls, piece by piece.

    Starts a server on a free port and asks it through the openai package. The exit status is 0 if the calls
    that were asked for came and fit their schemas.
    """
    try:
        from larksong.api.demo import run
    except ModuleNotFoundError as error:
        fail(f"the demo needs {error.name}: pip install 'larksong[demo]'")
    console = Console()
    settings = settings_of(model=model, format=format)
    with console.status(f"Loading {settings.model} …"):
        ready = loaded(settings)
    if not run(ready, console):
        raise typer.Exit(1)


@app.command()
def grammar(
    tools: Annotated[
        typer.FileText | None, typer.Argument(help="JSON file with the tools of a request; - for stdin")
    ] = None,
    schema: Annotated[
        typer.FileText | None,
        typer.Option(
            help="Instead of tools: JSON file with a JSON Schema, as of response_format; - for stdin"
        ),
    ] = None,
    format: _FormatOption = None,
    required: Annotated[bool, typer.Option("--required", help="As with tool_choice: required.")] = False,
    to: Annotated[
        Target,
        typer.Option(
            "--to",
            help="lark as it runs, or for another engine: kbnf (formatron), gbnf (llama.cpp), llguidance.",
        ),
    ] = Target.LARK,
) -> None:
    """Print the grammar of a request's tools, or of a JSON Schema.

    Other engines know no members in any order: for them the order is fixed, and comments say what else is not
    kept.
    """
    if (tools is None) == (schema is None):
        fail("give either a file with tools, or --schema")
    try:
        if schema is not None:
            made = response_grammar(json.load(schema), _BYTES)
        else:
            assert tools is not None
            specs = TypeAdapter(list[ToolSpec]).validate_json(tools.read())
            chosen = wire_format(settings_of(format=format).format)
            made = chosen.grammar([tool(spec) for spec in specs], CallPolicy(required=required), _BYTES)
    except ValidationError as error:
        fail_validation(error)
    except (GrammarsError, json.JSONDecodeError) as error:
        fail(str(error))
    try:
        typer.echo(expand(made).lark() if to is Target.LARK else export(made, to.value), nl=False)
    except TooManyStates as error:
        fail(f"the grammar cannot be written for {to.value}: a terminal has {error}")


@app.command()
def parse(
    format: _FormatOption = None,
    tools: Annotated[
        typer.FileText | None, typer.Option("--tools", help="JSON file with the tools of the request.")
    ] = None,
) -> None:
    """Read what a model wrote: JSON lines in, JSON lines out; with --format, stdin is the text of one turn.

    A line: {"id", "format", "tools", "text" | "chunks" | "chunks_hex" | "token_ids" with "tokenizer",
    "build":
    "open" | "strict", "mode": "schema" | "compat", "prompt_tail", "finish": "stop" | "length"}.
    """
    listed = json.load(tools) if tools is not None else []
    if format is not None:
        records = [json.dumps({"format": format, "tools": listed, "text": sys.stdin.read()})]
    else:
        records = [line for line in sys.stdin if line.strip()]
    failed = False
    for line in records:
        try:
            found = parse_record({"tools": listed, **json.loads(line)})
        except (ValueError, KeyError, TypeError) as error:
            found, failed = {"error": f"{type(error).__name__}: {error}"}, True
        typer.echo(json.dumps(found, ensure_ascii=False))
    raise typer.Exit(int(failed))


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
