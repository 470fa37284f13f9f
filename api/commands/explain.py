"""`larksong explain`: where a text leaves the grammar, what was being read there, what keyword refuses it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text
from tokenizers import Tokenizer

from larksong.api.commands.end_token import end_token
from larksong.api.commands.input import policy_of, read_json, schema_of, tools_of
from larksong.api.offline.parse import byte_engine
from larksong.api.openai_chat.requests import tool
from larksong.api.runtime.printable import printable
from larksong.api.runtime.readable_json import readable_json
from larksong.api.settings.command_errors import fail
from larksong.api.settings.flags import with_schema_settings
from larksong.api.turns.schema_policy import SchemaPolicy
from larksong.engine.backends.encoding import text_ids
from larksong.engine.engine import Engine
from larksong.engine.errors import EngineError
from larksong.engine.vocabulary import Vocabulary, VocabularyError
from larksong.grammars import CallPolicy, GrammarsError, wire_format
from larksong.grammars.explain import Request, TurnExplanation, explain_turn

_BEFORE, _AFTER = 60, 40  # bytes of the text that are shown around the place


def as_json(found: TurnExplanation, vocabulary: Vocabulary, format: str | None = None) -> dict[str, Any]:
    """An explanation as plain values; ids of tokens with their text.

    `format`: None for an answer by a schema.
    """
    return {
        "format": format,
        "calls": found.calls,
        "allowed": found.allowed,
        "complete": found.complete,
        "offset": found.offset,
        "token": found.token,
        "live": [{"name": each.name, "role": each.role.value, "text": each.text} for each in found.live],
        "wanted": [
            {
                "tool": each.tool,
                "pointer": each.pointer,
                "keyword": each.keyword,
                "value": each.value,
                "message": each.message,
                "in_request": each.in_request,
            }
            for each in found.wanted
        ],
        "nearest": [{"id": token, "text": _token_text(vocabulary, token)} for token in found.nearest],
    }


def show(
    found: TurnExplanation, data: bytes, vocabulary: Vocabulary, console: Console, format: str | None = None
) -> None:
    """Print an explanation of a text for people. Nothing of the text is read as markup."""
    read = f" ({format}, {found.calls} call{'' if found.calls == 1 else 's'})" if format else ""
    if found.allowed:
        whole = "allowed: a whole turn" if found.complete else "allowed so far, but not a whole turn"
        console.print(whole + read)
    else:
        token = "" if vocabulary.width == _BYTES else f", in token {found.token}"
        console.print(f"refused at byte {found.offset}{token}{read}")
    start = _whole_character(data, max(found.offset - _BEFORE, 0))
    before = _quoted(data[start : found.offset])
    after = _quoted(data[found.offset : _whole_character(data, found.offset + _AFTER)])
    console.print(Text.assemble("  ", (before, "green"), (after or "▏", "bold red")), soft_wrap=True)
    if found.complete:
        return
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="dim")
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for each in found.wanted:
        place = "request" if each.in_request else each.tool or "response_format"
        told = f"{each.message}\n{place} {each.pointer or '(its root)'}"
        table.add_row("wanted", each.keyword, Text(printable(told)))
    if not found.allowed and not found.wanted:
        told = "no keyword refuses this: the wire format, JSON itself or the bound of numbers does"
        table.add_row("wanted", "", told)
    for terminal in found.live:
        table.add_row("live", Text(printable(terminal.name)), Text(printable(terminal.text)))
    nearest = "  ".join(
        json.dumps(_token_text(vocabulary, each), ensure_ascii=False) for each in found.nearest
    )
    table.add_row("nearest", "", Text(printable(nearest)))
    console.print(table)


_BYTES = 257  # the width of the vocabulary of single bytes, with its end token


@with_schema_settings
def command(
    schemas: SchemaPolicy,
    text: Annotated[
        typer.FileBinaryRead | None, typer.Argument(help="File with the model's text; without it, stdin.")
    ] = None,
    tools: Annotated[
        typer.FileText | None, typer.Option(help="JSON file with the tools of the request, or the request.")
    ] = None,
    format: Annotated[
        str, typer.Option(help="Wire format of the calls.", envvar="LARKSONG_FORMAT")
    ] = "qwen3_coder",
    schema: Annotated[
        typer.FileText | None, typer.Option(help="Instead of tools: JSON file with a JSON Schema.")
    ] = None,
    tool_choice: Annotated[
        str | None,
        typer.Option(
            help="auto, required, or the name of a tool; else as the request in --tools says, else auto."
        ),
    ] = None,
    in_reasoning: Annotated[
        bool, typer.Option("--in-reasoning", help="The prompt ended inside reasoning, as after <think>.")
    ] = False,
    tokenizer: Annotated[
        Path | None,
        typer.Option(help="tokenizer.json, or a folder that has one; without it, markers are letters."),
    ] = None,
    eos: Annotated[
        str | None, typer.Option(help="Token that ends a turn; else what tokenizer_config.json says.")
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Explain why a text is refused: where, by which keyword of which schema, and what may come instead.

    The exit status is 0 if all of the text is allowed, 1 if not.
    """
    if (tools is None) == (schema is None):
        fail("give either --tools or --schema")
    written: bytes = (text or sys.stdin.buffer).read()
    try:
        if schema is not None:
            found_schema, strict = schema_of(read_json(schema))
            request = Request(schema=found_schema, options=schemas.options(strict))
        else:
            assert tools is not None
            asked = read_json(tools)
            specs = tools_of(asked)
            made = tuple(tool(spec, schemas) for spec in specs)
            policy = policy_of(asked, specs) if tool_choice is None else _policy(tool_choice)
            request = Request(wire_format(format), made, policy, in_reasoning=in_reasoning)
        engine, cut = _tokens(tokenizer, eos)
        found = explain_turn(request, engine, cut(written))
        line = written.removesuffix(b"\n").removesuffix(b"\r")
        if not found.allowed and found.offset >= len(line):
            # The last line's end, as editors write it, is the file's and not the model's.
            written, found = line, explain_turn(request, engine, cut(line))
    except (GrammarsError, EngineError) as error:
        fail(str(error))
    name = request.format.name if request.format is not None else None
    if json_:
        typer.echo(readable_json(as_json(found, engine.vocabulary, name)))
    else:
        show(found, written, engine.vocabulary, Console(highlight=False, markup=False), name)
    raise typer.Exit(int(not found.allowed))


def _policy(choice: str) -> CallPolicy:
    if choice in ("auto", "required"):
        return CallPolicy(required=choice == "required")
    return CallPolicy(required=True, min_calls=1, max_calls=1, only=choice)


def _tokens(tokenizer: Path | None, eos: str | None) -> tuple[Engine, Callable[[bytes], list[int]]]:
    """An engine of a vocabulary, and what cuts text into its tokens."""
    if tokenizer is None:
        return byte_engine(), list
    file = tokenizer / "tokenizer.json" if tokenizer.is_dir() else tokenizer
    if not file.is_file():
        raise VocabularyError(f"there is no tokenizer at {file}")
    vocabulary = Vocabulary.from_tokenizer(file, eos=[eos or end_token(file)])
    read = Tokenizer.from_file(str(file))
    return Engine(vocabulary), lambda text: text_ids(read, vocabulary, text.decode(errors="replace"))


def _token_text(vocabulary: Vocabulary, token: int) -> str:
    data = vocabulary.text(token)
    if data:
        return data.decode(errors="replace")
    return next((name for name, each in vocabulary.special.items() if each == token), "")


def _whole_character(data: bytes, at: int) -> int:
    """The first place from `at` on where no character of UTF-8 is cut in two."""
    while at < len(data) and data[at] & 0xC0 == 0x80:
        at += 1
    return at


def _quoted(data: bytes) -> str:
    return printable(json.dumps(data.decode(errors="replace"), ensure_ascii=False)[1:-1].replace('\\"', '"'))
