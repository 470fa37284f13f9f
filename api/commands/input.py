"""What commands read: JSON files with tools, requests or schemas. What is wrong with one ends the command."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, TextIO

from pydantic import TypeAdapter, ValidationError

from larksong.api.errors import ApiError
from larksong.api.offline.tool_function import tool_function
from larksong.api.openai_chat.requests import call_policy
from larksong.api.openai_chat.schemas import ChatRequest, ToolSpec
from larksong.api.settings.command_errors import fail, fail_validation
from larksong.grammars import CallPolicy


def read_json(file: TextIO) -> Any:
    """The JSON of a file."""
    name = "standard input" if file.name == "<stdin>" else file.name
    try:
        return json.load(file)
    except json.JSONDecodeError as error:
        fail(f"{name} is not JSON: {error.msg} at line {error.lineno}, column {error.colno}")
    except UnicodeDecodeError as error:
        fail(f"{name} is not JSON: {error}")
    except RecursionError:
        fail(f"{name} is nested too deeply")


class UnreadableTools(ValueError):
    """A JSON value that has no tools; the message says what is wrong with it."""


def listed_tools(value: Any) -> tuple[str, list[Any]]:
    """Where the tools stand in a list of them, one alone or a whole request, and each in OpenAI's shape.

    Raises UnreadableTools.
    """
    where = ""
    if isinstance(value, Mapping):
        if "tools" in value or "functions" in value:
            where = "tools" if "tools" in value else "functions"
            value = value[where]
        elif "function" in value or "name" in value:
            value = [value]
        else:
            raise UnreadableTools("an object without 'tools' is neither tools nor a request")
    if not isinstance(value, list):
        raise UnreadableTools(f"{where or 'the tools'}: a list of tools is wanted")
    return where, [_tool(each) for each in value]


def tools_of(value: Any) -> list[ToolSpec]:
    """The tools of a list of them, of one alone, or of a whole request."""
    where = ""
    try:
        where, listed = listed_tools(value)
        return TypeAdapter(list[ToolSpec]).validate_python(listed)
    except UnreadableTools as error:
        fail(f"{error}; a schema is given with --schema")
    except ValidationError as error:
        fail_validation(error, where)


def _tool(value: Any) -> Any:
    """A tool in OpenAI's shape; what is none is refused by its schema."""
    if not isinstance(value, Mapping) or "function" in value or "name" not in value:
        return value
    return {"type": "function", "function": tool_function(value)}


def lines_of(file: TextIO) -> Iterator[str]:
    """Its lines, as they come. What is no UTF-8 in them is replaced."""
    for line in file.buffer:
        yield line.decode(errors="replace")


_ABOUT_CALLS = ("tool_choice", "parallel_tool_calls", "min_tool_calls", "max_tool_calls")
_ANTHROPICS = {"auto": "auto", "any": "required", "none": "none"}


def policy_of(value: Any, tools: list[ToolSpec]) -> CallPolicy:
    """What a request says of calls; of tools alone, that there may be any."""
    said = {name: value[name] for name in _ABOUT_CALLS if isinstance(value, Mapping) and name in value}
    if not said:
        return CallPolicy()
    choice = said.get("tool_choice")
    if isinstance(choice, Mapping) and choice.get("type") in (*_ANTHROPICS, "tool"):
        named = {"type": "function", "function": {"name": choice.get("name")}}
        said["tool_choice"] = _ANTHROPICS.get(choice["type"], named)
    asked = {"model": "", "messages": [{"role": "user", "content": "?"}], "tools": tools, **said}
    try:
        policy = call_policy(ChatRequest.model_validate(asked))
    except ValidationError as error:
        fail_validation(error)
    except ApiError as error:
        fail(error.message)
    if policy is None:
        fail("tool_choice is none: no tool may be called")
    return policy


def schema_of(value: Any) -> tuple[Any, bool | None]:
    """A schema, and whether it is strict; also out of a response_format, or a request that has one."""
    form = value
    if isinstance(value, Mapping) and ("messages" in value or "response_format" in value):
        form = value.get("response_format")
        if not isinstance(form, Mapping) or form.get("type") != "json_schema":
            fail("this is a request without a response_format of type json_schema: give a JSON Schema")
    if isinstance(form, Mapping) and form.get("type") == "json_schema":
        spec = form.get("json_schema")
        if not isinstance(spec, Mapping) or "schema" not in spec:
            fail("this is a response_format without json_schema.schema")
        return spec["schema"], spec.get("strict")
    return form, None
