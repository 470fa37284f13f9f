"""Answers that are JSON of a given schema and nothing else."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from larksong.engine.grammar import Grammar
from larksong.engine.terminals import Special, Terminal
from larksong.engine.vocabulary import Vocabulary
from larksong.grammars.json_rules import RuleBuilder
from larksong.grammars.schema import DEFAULT_OPTIONS, Options, Schema, Widened, read_schema

_CACHED_SCHEMAS = 256

JSON_OBJECT: Mapping[str, Any] = {"type": "object"}
"""the schema of the response format `json_object`"""


def response_grammar(
    schema: Mapping[str, Any] | bool, vocabulary: Vocabulary, options: Options = DEFAULT_OPTIONS
) -> Grammar:
    """The grammar of a turn that is one JSON text of `schema`; the same object for the same schema."""
    return _response_grammar(json.dumps(schema), vocabulary, options)


def response_widened(
    schema: Mapping[str, Any] | bool, options: Options = DEFAULT_OPTIONS
) -> tuple[Widened, ...]:
    """The keywords that the grammar of `schema` does not enforce: the answer is to be validated."""
    return _response_schema(json.dumps(schema), options).widened


@lru_cache(maxsize=_CACHED_SCHEMAS)
def _response_schema(text: str, options: Options) -> Schema:
    return read_schema(json.loads(text), options)


@lru_cache(maxsize=_CACHED_SCHEMAS)
def _response_grammar(text: str, vocabulary: Vocabulary, options: Options) -> Grammar:
    schema = _response_schema(text, options)
    builder = RuleBuilder(schema)
    start = builder.names.rule("start")
    answer = builder.value(schema.shapes, "response")
    end = builder.terminal(Terminal("END", Special(vocabulary.eos_ids, "<end>")))
    builder.rule(start, (answer, end))
    return builder.grammar("response_format")
