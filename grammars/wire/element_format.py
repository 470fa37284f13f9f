"""What the formats share in which each parameter is an element of its own, strings as raw text.

A marker that the tokenizer holds as a token ends a value by its id: the same letters are data. Where the
suffix of a value is letters, a raw value ends where it is followed by the start of the next parameter or the
end of the function; anything else after it is data.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar

from larksong.engine.grammar.grammar import Grammar
from larksong.engine.vocabulary import Vocabulary
from larksong.grammars.errors import UnsupportedKeyword
from larksong.grammars.json.members import Shapes
from larksong.grammars.json.shortest import joined, shorter, shortest_json, shortest_string
from larksong.grammars.schema import Schema
from larksong.grammars.schema.references import escape
from larksong.grammars.schema.shapes import EnumShape, StringShape
from larksong.grammars.schema.values import json_text
from larksong.grammars.tools import Tool
from larksong.grammars.wire.element_rules import ElementRules, objects
from larksong.grammars.wire.elements import PYTHON_WORDS, Elements
from larksong.grammars.wire.open_element_rules import OpenElementRules
from larksong.grammars.wire.wire_format import WireFormat


class ElementFormat(WireFormat):
    r"""Strings are raw text, everything else is JSON.

    arg_name_prefix  name  arg_name_suffix  value  arg_value_suffix   …  function_close
    <parameter=      city  >\n              Paris  \n</parameter>\n      </function>
    """

    arg_name_prefix: str
    """the text before a parameter's name"""
    arg_name_suffix: tuple[str, ...]
    """the text between a name and its value, marker by marker"""
    json_arg_name_suffix: ClassVar[tuple[str, ...] | None] = None
    """the same before a value that is JSON, in formats that tell it so"""
    arg_value_suffix: tuple[str, ...]
    """the text behind a value, marker by marker"""
    function_close: tuple[str, ...]
    """spellings of what ends the parameters; the first is the usual one"""
    suffix_overlap: ClassVar[str] = ""
    """the end of `arg_name_suffix` that is the start of `arg_value_suffix`, too, where a value is empty"""
    forbidden_in_names: ClassVar[str]
    """the characters that names cannot have, since they would end them"""

    @property
    def elements(self) -> Elements:
        """All that stands around names and values."""
        return Elements(
            self.arg_name_prefix,
            self.arg_name_suffix,
            self.json_arg_name_suffix,
            self.arg_value_suffix,
            self.function_close,
            self.suffix_overlap,
        )

    def check_names(self, tool: Tool, parameters: Schema) -> None:
        super().check_names(tool, parameters)
        self.refuse_name(tool, self.forbidden_in_names)
        for shape in objects(parameters):
            for name, _ in shape.properties:
                self.refuse_parameter(tool, name, self.forbidden_in_names, "/properties/" + escape(name))
            if shape.free:
                raise UnsupportedKeyword(
                    f"tool {tool.name!r}: parameters that are not declared cannot be written in {self.name}",
                    tool=tool.name,
                    pointer="/additionalProperties",
                    keyword="additionalProperties",
                )

    def arguments(self, tool: Tool, parameters: Schema, vocabulary: Vocabulary | None = None) -> Grammar:
        return ElementRules(self.elements, vocabulary, parameters).grammar(tool.name)

    def open_arguments(self, parameters: Schema | None, vocabulary: Vocabulary | None = None) -> Grammar:
        return OpenElementRules(self.elements, vocabulary, parameters).grammar()

    def shortest_arguments(self, parameters: Schema, vocabulary: Vocabulary | None = None) -> str:
        options = []
        for shape in objects(parameters):
            nodes = shape.nodes
            names = [name for name in nodes if name in shape.required]
            others = [name for name in nodes if name not in shape.required]
            names += others[: max(shape.minimum - len(names), 0)]
            written = (
                self.arg_name_prefix + name + self._shortest_value(parameters, parameters.nodes[nodes[name]])
                for name in names
            )
            options.append(joined(written) + min(self.function_close, key=len))
        return shorter(*options)

    def _shortest_value(self, schema: Schema, shapes: Shapes) -> str:
        """The shortest text of a value, with what stands around it."""
        before, before_json = self._before_value(is_text=True), self._before_value(is_text=False)
        close = "".join(self.arg_value_suffix)
        found: list[str] = []
        for shape in shapes:
            match shape:
                case StringShape(language):
                    text = shortest_string(language)
                    # Around an empty value what its prefix and its suffix share stands once.
                    found.append(before + text + (close if text else close.removeprefix(self.suffix_overlap)))
                case EnumShape(texts):
                    for text in texts:
                        value = PYTHON_WORDS.get(text) or text
                        is_text = text.startswith('"')
                        found.append((before + json.loads(text) if is_text else before_json + value) + close)
                case _:
                    found.append(before_json + shortest_json(schema, (shape,)) + close)
        return shorter(*found)

    def _before_value(self, *, is_text: bool) -> str:
        return "".join(self.elements.name_suffix(is_text))

    def render_parameters(self, arguments: Mapping[str, Any]) -> str:
        """The parameters of a call and what ends them."""
        close = "".join(self.arg_value_suffix)
        written = []
        for key, value in arguments.items():
            is_text = isinstance(value, str)
            text = value if is_text else json_text(value)
            written.append(self.arg_name_prefix + key + self._before_value(is_text=is_text) + text + close)
        return "".join(written) + self.function_close[0]
