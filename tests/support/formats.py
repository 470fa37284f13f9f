"""Which wire formats a test tries: all of them, or, where the fact is the engine's, one of each kind."""

import os

import pytest

from larksong.grammars import format_names

ALL = os.environ.get("LARKSONG_FORMATS") == "all"
# JSON in a marker, JSON behind a header of letters, elements with raw text, markers in pairs, elements whose attributes
# say what is text, and a notation that is like JSON. `make test-formats` takes all formats where these stand for them.
KINDS = ("hermes", "harmony", "qwen3_coder", "glm_4_7", "deepseek_v4", "gemma4")
TRIED = tuple(format_names()) if ALL else KINDS
# Where only the values of arguments matter: JSON, raw text, and the notation that is like JSON.
NOTATIONS = tuple(format_names()) if ALL else ("hermes", "qwen3_coder", "gemma4")

every_format = pytest.mark.parametrize("name", format_names())
every_kind = pytest.mark.parametrize("name", TRIED)
every_notation = pytest.mark.parametrize("name", NOTATIONS)
