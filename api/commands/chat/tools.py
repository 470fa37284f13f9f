"""The tools of a chat: a JSON file as requests have them, or a Python file whose functions they are."""

from __future__ import annotations

import asyncio
import importlib.util
import inspect
import json
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import TypeAdapter, ValidationError, validate_call
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticSchemaGenerationError, PydanticUserError

from larksong.api.commands.input import UnreadableTools, listed_tools
from larksong.api.errors import field_path
from larksong.api.openai_chat.schemas import ToolSpec


class ToolsFileError(ValueError):
    """A file of tools that cannot be used; the message says why."""


@dataclass(frozen=True)
class ChatTool:
    """A tool as the request has it, and the function behind it, if there is one."""

    spec: dict[str, Any]
    function: Callable[..., Any] | None = None

    @property
    def name(self) -> str:
        """How the model calls it."""
        return str(self.spec["function"]["name"])

    @property
    def description(self) -> str:
        """What it is for."""
        return str(self.spec["function"].get("description") or "")

    def run(self, arguments: str) -> str:
        """What the function returns for these arguments (JSON text), as text; an error is a result, too."""
        assert self.function is not None
        try:
            found = validate_call(self.function)(**json.loads(arguments))
            if inspect.isawaitable(found):
                found = asyncio.run(_awaited(found))
            return found if isinstance(found, str) else TypeAdapter(type(found)).dump_json(found).decode()
        except Exception as error:  # the tool is anybody's code, and the model is to hear of it
            return f"{type(error).__name__}: {error}"


def load_tools(file: Path) -> list[ChatTool]:
    """The tools of a `.json` or `.py` file. Raises ToolsFileError."""
    if not file.is_file():
        raise ToolsFileError(f"there is no file {file}")
    if file.suffix == ".py":
        return module_tools(_imported(file))
    try:
        listed = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise ToolsFileError(f"{file} is not JSON: {error}") from error
    where = ""
    try:
        where, specs = listed_tools(listed)
        TypeAdapter(list[ToolSpec]).validate_python(specs)
    except UnreadableTools as error:
        raise ToolsFileError(f"{file}: {error}") from error
    except ValidationError as error:
        first = error.errors()[0]
        raise ToolsFileError(f"{file}: {where}{field_path(first['loc'])}: {first['msg']}") from error
    if not specs:
        raise ToolsFileError(f"{file} has no tools")
    return [ChatTool(spec) for spec in specs]


def module_tools(module: ModuleType) -> list[ChatTool]:
    """The functions of a module as tools: those in its `TOOLS`, else all of its own whose name has no
    underscore in front. Types of parameters become the schema, docstrings the descriptions.

    Raises ToolsFileError.
    """
    listed = getattr(module, "TOOLS", None)
    functions: list[Callable[..., Any]] = listed if isinstance(listed, list) else _own_functions(module)
    if not functions:
        raise ToolsFileError(f"{module.__file__} has no functions that could be tools")
    return [_tool(function) for function in functions]


def _own_functions(module: ModuleType) -> list[Callable[..., Any]]:
    return [
        function
        for name, function in vars(module).items()
        if inspect.isfunction(function) and function.__module__ == module.__name__ and name[0] != "_"
    ]


def _tool(function: Callable[..., Any]) -> ChatTool:
    try:
        schema = TypeAdapter(function).json_schema()  # type: ignore[arg-type]  # it takes functions, too
    except (
        PydanticInvalidForJsonSchema,
        PydanticSchemaGenerationError,
        PydanticUserError,
        NameError,
    ) as error:
        name = getattr(function, "__name__", function)
        why = str(error).partition("\n")[0]  # what pydantic says behind it is for its own users
        raise ToolsFileError(f"{name}: its parameters cannot be written as JSON Schema: {why}") from error
    description = inspect.getdoc(function) or ""
    spec = {"name": function.__name__, "description": description, "parameters": schema}
    return ChatTool({"type": "function", "function": spec}, function)


def _imported(file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"larksong_tools_{file.stem}", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where annotations are looked up
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # anybody's code
        raise ToolsFileError(f"{file} cannot be imported: {type(error).__name__}: {error}") from error
    return module


async def _awaited(value: Awaitable[Any]) -> Any:
    return await value
