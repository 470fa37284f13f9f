"""The command `larksong bench`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from larksong.api.settings.flags import load_settings, option


def bench(
    tokenizer: Annotated[Path, typer.Option(help="tokenizer.json, or a folder that has one.")],
    eos: Annotated[
        str | None, typer.Option(help="Token that ends a turn; else what tokenizer_config.json says.")
    ] = None,
    format: Annotated[
        list[str] | None, typer.Option(help="Wire format, or response_format; may be given several times.")
    ] = None,
    format_file: Annotated[list[Path] | None, option("format_file")] = None,
    tools: Annotated[int, typer.Option(min=10, help="Tools in a request.")] = 10,
    repeats: Annotated[int, typer.Option(min=1, help="How often everything is measured.")] = 10,
) -> None:
    """Measure the engine on a tokenizer: builds, masks, advances, deltas, whole turns."""
    load_settings(format_file=format_file)  # before it is known which formats there are
    # Imported here, since the other commands do not need it.
    from larksong.api.commands.bench.measure import ALL_FORMATS, run
    from larksong.engine.vocabulary import VocabularyError
    from larksong.grammars import UnknownFormat

    try:
        run(tokenizer, eos, format or ALL_FORMATS, tools, repeats, Console())
    except (VocabularyError, UnknownFormat) as error:
        typer.echo(f"larksong: {error}", err=True)
        raise typer.Exit(2) from None
