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
from larksong.grammars.schema import read_schema

_CACHED_SCHEMAS = 256


def response_grammar(schema: Mapping[str, Any], vocabulary: Vocabulary) -> Grammar:
    """The grammar of a turn that is one JSON text of `schema`; the same object for the same schema."""
    return _response_grammar(json.dumps(schema), vocabulary)


@lru_cache(maxsize=_CACHED_SCHEMAS)
def _response_grammar(text: str, vocabulary: Vocabulary) -> Grammar:
    schema = read_schema(json.loads(text))
    builder = RuleBuilder(schema)
    start = builder.names.rule("start")
    answer = builder.value(schema.shapes, "response")
    end = builder.terminal(Terminal("END", Special(vocabulary.eos_ids, "<end>")))
    builder.rule(start, (answer, end))
    return builder.grammar("response_format")
