"""The command line: `larksong serve | demo | grammar | check | explain | parse | bench | model fetch`."""

from __future__ import annotations

import json
import sys
from typing import Annotated, Any, NoReturn

import typer
import uvicorn
from pydantic import TypeAdapter, ValidationError
from rich.console import Console

from larksong.api.bench_command import bench
from larksong.api.chat_requests import tool
from larksong.api.check import command as check
from larksong.api.compat import NoCompat
from larksong.api.errors import field_path
from larksong.api.explain import command as explain
from larksong.api.generation import Model
from larksong.api.models import load_model
from larksong.api.parse import parse_record
from larksong.api.schemas import ToolSpec
from larksong.api.server import create_app
from larksong.api.settings import Settings
from larksong.engine.backends.errors import ModelError
from larksong.engine.backends.model_store import find_model
from larksong.engine.vocabulary import Vocabulary
from larksong.grammars import CallPolicy, GrammarsError, UnknownFormat, wire_format
from larksong.grammars.response_format import response_grammar

app = typer.Typer(
    help="Tool calls that are valid by construction, streamed while the model writes them.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
model_app = typer.Typer(help="The small model that `serve` and `demo` use by default.", no_args_is_help=True)
app.add_typer(model_app, name="model")
app.command()(bench)
app.command("check")(check)
app.command("explain")(explain)

# A vocabulary of no model: no marker is a token of its own, so that all of them are printed as text.
_BYTES = Vocabulary(
    tokens=(*(bytes([byte]) for byte in range(256)), b""),
    special={"<end>": 256},
    eos_ids=frozenset({256}),
    width=257,
)


def _option(field: str) -> Any:
    """The flag of a setting; what its help says comes from the setting."""
    info = Settings.model_fields[field]
    default = False if info.default is None else str(info.default)
    return typer.Option(help=info.description, envvar=f"LARKSONG_{field.upper()}", show_default=default)


_ModelOption = Annotated[str | None, _option("model")]
_FormatOption = Annotated[str | None, _option("format")]


@app.command()
def serve(
    host: Annotated[str | None, _option("host")] = None,
    port: Annotated[int | None, _option("port")] = None,
    model: _ModelOption = None,
    served_name: Annotated[str | None, _option("served_name")] = None,
    format: _FormatOption = None,
    finish_within_budget: Annotated[bool | None, _option("finish_within_budget")] = None,
    forced_tokens: Annotated[bool | None, _option("forced_tokens")] = None,
    unenforceable: Annotated[str | None, _option("unenforceable")] = None,
    schema_formats: Annotated[bool | None, _option("schema_formats")] = None,
    compat: Annotated[str | None, _option("compat")] = None,
    log_level: Annotated[str | None, _option("log_level")] = None,
) -> None:
    """Serve a model: POST /v1/chat/completions, GET /v1/models, GET /health."""
    settings = _settings(
        host=host,
        port=port,
        model=model,
        served_name=served_name,
        format=format,
        finish_within_budget=finish_within_budget,
        forced_tokens=forced_tokens,
        unenforceable=unenforceable,
        schema_formats=schema_formats,
        compat=compat,
        log_level=log_level,
    )
    served = _load(settings)
    uvicorn.run(create_app([served]), host=settings.host, port=settings.port, log_level=settings.log_level)


@app.command()
def demo(model: _ModelOption = None, format: _FormatOption = None) -> None:
    """Watch a small model on this machine write tool calls, piece by piece.

    Starts a server on a free port and asks it through the openai package. The exit status is 0 if the calls
    that were asked for came and fit their schemas.
    """
    try:
        from larksong.api.demo import run
    except ModuleNotFoundError as error:
        _fail(f"the demo needs {error.name}: pip install 'larksong[demo]'")
    console = Console()
    settings = _settings(model=model, format=format)
    with console.status(f"Loading {settings.model} …"):
        loaded = _load(settings)
    if not run(loaded, console):
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
) -> None:
    """Print the grammar of a request's tools, or of a JSON Schema, as Lark text."""
    if (tools is None) == (schema is None):
        _fail("give either a file with tools, or --schema")
    try:
        if schema is not None:
            typer.echo(response_grammar(json.load(schema), _BYTES).lark(), nl=False)
            return
        assert tools is not None
        specs = TypeAdapter(list[ToolSpec]).validate_json(tools.read())
        chosen = wire_format(_settings(format=format).format)
        made = chosen.grammar([tool(spec) for spec in specs], CallPolicy(required=required), _BYTES)
    except ValidationError as error:
        _fail_validation(error)
    except (GrammarsError, json.JSONDecodeError) as error:
        _fail(str(error))
    typer.echo(made.lark(), nl=False)


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
        _fail(str(error))


def main() -> None:
    """The entry point of the `larksong` command."""
    app()


def _settings(**flags: Any) -> Settings:
    """The settings with the flags that were given."""
    try:
        return Settings(**{name: value for name, value in flags.items() if value is not None})
    except ValidationError as error:
        _fail_validation(error)


def _load(settings: Settings) -> Model:
    try:
        return load_model(settings)
    except (ModelError, UnknownFormat, NoCompat) as error:
        _fail(str(error))


def _fail_validation(error: ValidationError) -> NoReturn:
    first = error.errors()[0]
    place = field_path(first["loc"])
    _fail(f"{place}: {first['msg']}" if place else first["msg"])


def _fail(message: str) -> NoReturn:
    typer.echo(f"larksong: {message}", err=True)
    raise typer.Exit(2)
