"""The command `larksong grammar`."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import Annotated

import typer

from larksong.api.commands.input import policy_of, read_json, schema_of, tools_of
from larksong.api.offline.byte_vocabulary import BYTES
from larksong.api.openai_chat.requests import tool
from larksong.api.settings.command_errors import fail
from larksong.api.settings.flags import load_settings, option, with_schema_settings
from larksong.api.turns.schema_policy import SchemaPolicy
from larksong.engine.automata.characters import TooManyStates
from larksong.engine.grammar.expand import expand
from larksong.engine.grammar.export import export
from larksong.grammars import GrammarsError, Widened, wire_format
from larksong.grammars.answers.response_format import response_grammar, response_widened


class Target(StrEnum):
    """The languages that `larksong grammar` prints."""

    LARK = "lark"
    KBNF = "kbnf"
    GBNF = "gbnf"
    LLGUIDANCE = "llguidance"


@with_schema_settings
def grammar(
    schemas: SchemaPolicy,
    tools: Annotated[
        typer.FileText | None,
        typer.Argument(help="JSON file with the tools of a request, or the request; - for stdin"),
    ] = None,
    schema: Annotated[
        typer.FileText | None,
        typer.Option(
            help="Instead of tools: JSON file with a JSON Schema, or the response_format; - for stdin"
        ),
    ] = None,
    format: Annotated[str | None, option("format")] = None,
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
    widened: list[tuple[str, Widened]] = []
    try:
        if schema is not None:
            found, strict = schema_of(read_json(schema))
            options = schemas.options(strict is not False)
            made = response_grammar(found, BYTES, options)
            widened += [("the schema", each) for each in response_widened(found, options)]
        else:
            assert tools is not None
            request = read_json(tools)
            specs = tools_of(request)
            given = [tool(spec, schemas) for spec in specs]
            policy = policy_of(request, specs)
            policy = replace(policy, required=policy.required or required)
            chosen = wire_format(load_settings(format=format).format)
            made = chosen.grammar(given, policy, BYTES)
            widened += [(f"tool {each.name!r}", found) for each in given for found in chosen.widened(each)]
    except GrammarsError as error:
        fail(str(error))
    for where, each in widened:
        typer.echo(f"larksong: not enforced: {where}, {each.pointer!r}: {each.reason}", err=True)
    try:
        typer.echo(expand(made).lark() if to is Target.LARK else export(made, to.value), nl=False)
    except TooManyStates as error:
        fail(f"the grammar cannot be written for {to.value}: {error}")
