"""Messages → prompt text, through the model's own chat template.

The environment is the one that model families write their templates for: transformers'
`chat_template_utils`, with its filters, functions and block settings. What a template cannot write is put
into the messages' text first, as the wire format writes it: the tools into the system message, earlier calls
into the assistant's, their results into the user's; messages whose order it does not take are joined with
their neighbours (see role_rules.py).
"""

from __future__ import annotations

import copy
import itertools
import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any

import jinja2
import jinja2.ext
import jinja2.nodes
import jinja2.parser
import jinja2.sandbox

from larksong.api.turns.role_rules import RoleRules
from larksong.grammars import Tool, WireFormat

ChatMessage = Mapping[str, Any]
"""A message as chat templates read it: role, content (text), and where they apply name, tool_calls (with
`arguments` as an object), tool_call_id and reasoning_content."""

_CHANGES = re.compile(r"\.\s*(?:append|extend|insert|update|setdefault|pop|remove|clear|reverse|sort)\s*\(")

# For models that bring no template: the layout that most families share.
_CHATML = """\
{% for message in messages %}<|im_start|>{{ message['role'] }}
{{ message['content'] }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""


class TemplateRefusal(ValueError):
    """The chat template refuses these messages."""


class ChatTemplate:
    """A model's chat template, compiled once."""

    def __init__(self, source: str | None, *, bos_token: str = "", eos_token: str = "") -> None:
        # Kimi's templates gather messages in lists of their own; what they are given is theirs, too, then.
        self._changes_lists = bool(_CHANGES.search(source or ""))
        environment = _environment(mutable=self._changes_lists)
        tree = environment.parse(source or _CHATML)
        # A mention is what can be known without running it: a template that names neither cannot write them.
        names = {node.name for node in tree.find_all(jinja2.nodes.Name)}
        members = {node.attr for node in tree.find_all(jinja2.nodes.Getattr)}
        constants = {node.value for node in tree.find_all(jinja2.nodes.Const) if isinstance(node.value, str)}
        self.renders_tools = "tools" in names
        self.renders_calls = "tool_calls" in members | constants
        self._template = environment.from_string(tree)
        self._tokens = {"bos_token": bos_token, "eos_token": eos_token}
        self._rules = RoleRules.of(self._written)

    def render(
        self,
        messages: Sequence[ChatMessage],
        tools: Sequence[Tool],
        wire_format: WireFormat,
        variables: Mapping[str, Any] = MappingProxyType({}),
        *,
        answer: bool = True,
    ) -> str:
        """The prompt, with `answer` up to where the assistant's answer begins. Raises TemplateRefusal.

        `variables`: what a request gives the template beside messages and tools.
        """
        if not self.renders_calls:
            messages = calls_as_text(messages, wire_format)
        if tools and not self.renders_tools:
            messages = with_system_text(messages, wire_format.system_text(tools))
        messages = self._rules.keep(messages)
        return self._render(messages, tools, {**variables, "add_generation_prompt": answer})

    def _render(
        self, messages: Sequence[ChatMessage], tools: Sequence[Tool], variables: Mapping[str, Any]
    ) -> str:
        listed = [_openai_tool(tool) for tool in tools] or None
        if self._changes_lists:
            messages, listed = copy.deepcopy((messages, listed))
        try:
            return self._template.render(
                messages=messages, tools=listed, documents=None, **{**self._tokens, **variables}
            )
        except (jinja2.TemplateError, TypeError, ValueError, LookupError, AttributeError) as error:
            raise TemplateRefusal(
                f"the model's chat template cannot write these messages: {error}"
            ) from error

    def _written(self, messages: Sequence[ChatMessage]) -> str:
        """The prompt of these messages, empty where the template refuses them."""
        try:
            return self._render(messages, (), {"add_generation_prompt": True})
        except TemplateRefusal:
            return ""


def with_system_text(messages: Sequence[ChatMessage], text: str) -> list[ChatMessage]:
    """The messages with `text` at the end of the system message, which is made where there is none."""
    if messages and messages[0]["role"] == "system":
        system, rest = messages[0], messages[1:]
        return [{**system, "content": f"{system['content']}\n\n{text}"}, *rest]
    return [{"role": "system", "content": text}, *messages]


def calls_as_text(messages: Sequence[ChatMessage], wire_format: WireFormat) -> list[ChatMessage]:
    """The messages with earlier calls and their results as text, for templates that know neither."""
    plain: list[ChatMessage] = []
    for are_results, group in itertools.groupby(messages, key=lambda message: message["role"] == "tool"):
        if are_results:
            results = [f"<tool_response>\n{message['content']}\n</tool_response>" for message in group]
            plain.append({"role": "user", "content": "\n".join(results)})
        else:
            plain.extend(_calls_into_content(message, wire_format) for message in group)
    return plain


def _calls_into_content(message: ChatMessage, wire_format: WireFormat) -> ChatMessage:
    calls = [call["function"] for call in message.get("tool_calls", ())]
    text = wire_format.render_calls([(call["name"], call["arguments"]) for call in calls]) if calls else ""
    kept = {key: value for key, value in message.items() if key != "tool_calls"}
    return {**kept, "content": "\n".join(part for part in (message["content"], text) if part)}


def _openai_tool(tool: Tool) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": function}


def _environment(*, mutable: bool = False) -> jinja2.Environment:
    """`mutable`: lists and mappings may be changed; attributes and calls are as restricted as without."""
    kind = jinja2.sandbox.SandboxedEnvironment if mutable else jinja2.sandbox.ImmutableSandboxedEnvironment
    environment = kind(
        trim_blocks=True, lstrip_blocks=True, extensions=[jinja2.ext.loopcontrols, _GenerationBlock]
    )
    environment.filters["tojson"] = _tojson
    environment.globals["raise_exception"] = _raise_exception
    environment.globals["strftime_now"] = lambda pattern: datetime.now().strftime(pattern)
    return environment


class _GenerationBlock(jinja2.ext.Extension):
    """`{% generation %}…{% endgeneration %}` marks the assistant's part for training; here it is its body."""

    tags = {"generation"}  # noqa: RUF012 - jinja2 declares a set

    def parse(self, parser: jinja2.parser.Parser) -> list[jinja2.nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def _tojson(value: Any, ensure_ascii: bool = False, **options: Any) -> str:
    # jinja2's own filter escapes HTML characters, which models never saw in training.
    return json.dumps(value, ensure_ascii=ensure_ascii, **options)


def _raise_exception(message: str) -> None:
    raise jinja2.TemplateError(message)
