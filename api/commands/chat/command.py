"""The command `larksong chat`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from larksong.api.commands.chat import example_tools
from larksong.api.commands.chat.tools import ChatTool, ToolsFileError, load_tools, module_tools
from larksong.api.commands.model import loaded
from larksong.api.runtime.background import BackgroundServer
from larksong.api.server import create_app
from larksong.api.settings.command_errors import fail
from larksong.api.settings.flags import load_settings, option
from larksong.api.settings.settings import Settings

if TYPE_CHECKING:
    import openai

_DEFAULT: str = Settings.model_fields["model"].default


def chat(
    tools: Annotated[
        Path | None,
        typer.Option(help="JSON file with tools as in a request, or Python file whose functions they are."),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="Folder or GGUF file of a model [env var: LARKSONG_MODEL]; with --url the name of one that "
            "the server has, else its first.",
            show_default=_DEFAULT,
        ),
    ] = None,
    format: Annotated[
        str | None,
        typer.Option(
            help="Wire format of tool calls [env var: LARKSONG_FORMAT]. Without it hermes for the default "
            "model, qwen3_coder for others, with --url what the server has.",
        ),
    ] = None,
    format_file: Annotated[list[Path] | None, option("format_file")] = None,
    url: Annotated[
        str | None, typer.Option(help="Talk to this running server instead: http://127.0.0.1:8000/v1.")
    ] = None,
    api_key: Annotated[
        str | None, typer.Option(help="Key of the server at --url.", envvar="LARKSONG_API_KEY")
    ] = None,
    system: Annotated[str | None, typer.Option(help="What the model is told first.")] = None,
    tool_choice: Annotated[
        str | None,
        typer.Option(
            help="auto, required, none, or the name of a tool. Without it auto; with the default model, "
            "which is too small to call by itself, required."
        ),
    ] = None,
    run: Annotated[
        bool, typer.Option("--run", help="Run Python tools without asking; else Enter runs each call.")
    ] = False,
    max_tokens: Annotated[int, typer.Option(min=1, help="Most tokens of an answer.")] = 512,
    temperature: Annotated[float, typer.Option(min=0, max=2, help="0 takes the likeliest token.")] = 0,
) -> None:
    """Talk to a model in the terminal, with tools whose calls grow before your eyes.

    Results are typed by hand, or Python tools are run. Without --tools there are three to play with: dice,
    the time, the day of the week. /help lists what else can be typed.
    """
    try:
        import openai

        from larksong.api.commands.chat.talk import Talk
    except ModuleNotFoundError as error:
        fail(f"the chat needs {error.name}: pip install 'larksong[demo]'")
    console = Console(highlight=False)
    chosen = _tools(tools)
    names = [tool.name for tool in chosen]
    if tool_choice not in (None, "auto", "required", "none", *names):
        fail(f"--tool-choice must be auto, required, none or a tool ({', '.join(names)}), not {tool_choice}")
    settings = load_settings(model=model if url is None else None, format=format, format_file=format_file)
    small = url is None and settings.model == _DEFAULT
    if small and "format" not in settings.model_fields_set:
        settings = settings.model_copy(update={"format": "hermes"})  # which that model writes best
    choice = tool_choice or ("required" if small else "auto")
    with _server(settings, url, console) as base_url:
        client = openai.OpenAI(base_url=base_url, api_key=api_key or "none needed", max_retries=0)
        served = _models(client, base_url)
        name = model if url is not None and model is not None else next(iter(served), None)
        if name is None:
            fail(f"{base_url} lists no models: name one with --model")
        if name not in served:
            console.print(Text(f"{base_url} lists other models: {', '.join(served)}", style="dim"))
        console.print(
            Text(f"{name} at {base_url}, tools: {', '.join(names)}; tool_choice {choice}. /help", style="dim")
        )
        if tools is None:
            console.print(Text(f"for example: {example_tools.QUESTION}", style="dim"))
        opening: list[dict[str, Any]] = [{"role": "system", "content": system}] if system else []
        if small and tools is None:
            opening += example_tools.EARLIER
        own: dict[str, Any] = {"finish_within_budget": True} if url is None else {}
        if url is not None and format is not None:
            own["tool_format"] = format
        Talk(
            client,
            name,
            chosen,
            console,
            choice=choice,
            opening=opening,
            run_all=run,
            options={"max_tokens": max_tokens, "temperature": temperature, **own},
        ).loop()


def _tools(file: Path | None) -> list[ChatTool]:
    """The tools of a file, or those to play with."""
    try:
        return load_tools(file) if file is not None else module_tools(example_tools)
    except ToolsFileError as error:
        fail(str(error))


def _models(client: openai.OpenAI, base_url: str) -> list[str]:
    """The names of the server's models."""
    import openai

    from larksong.api.commands.chat.talk import reason

    try:
        return [each.id for each in client.models.list().data]
    except openai.NotFoundError as error:
        fail(f"no API at {base_url}: {reason(error)}. Does its URL end in /v1?")
    except (AttributeError, TypeError):  # of HTML, or of other JSON
        fail(f"no API at {base_url}: it does not list models. Does its URL end in /v1?")
    except openai.AuthenticationError as error:
        fail(f"{base_url} wants another --api-key: {reason(error)}")
    except openai.OpenAIError as error:
        fail(f"no answer from {base_url}: {reason(error)}")


@contextmanager
def _server(settings: Settings, url: str | None, console: Console) -> Iterator[str]:
    """The base URL of the server to talk to; our own runs as long as the context."""
    if url is not None:
        if not url.startswith(("http://", "https://")):
            fail(f"--url must be like http://127.0.0.1:8000/v1, not {url!r}")
        yield url
        return
    with console.status(f"Loading {settings.model} …"):
        model = loaded(settings)
    with BackgroundServer(create_app([model], Settings(api_key=None, api_key_file=None))) as server:
        yield server.url
