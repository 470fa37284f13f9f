"""Wire formats and JSON Schema: from the tools of a request to a grammar.

What is needed to write a wire format of one's own is in `larksong.grammars.authoring`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from larksong.grammars.errors import (
    BrokenFormat,
    DuplicateTool,
    GrammarsError,
    InvalidConstraint,
    InvalidSchema,
    InvalidToolName,
    NoTools,
    Unenforceable,
    UnknownFormat,
    UnsupportedKeyword,
)
from larksong.grammars.registry import add_format_file, format_names, wire_format
from larksong.grammars.schema import Limits, Options, Widened, read_parameters
from larksong.grammars.tools import CallPolicy, Tool
from larksong.grammars.wire.wire_format import WireFormat

if TYPE_CHECKING:
    from larksong.grammars.answers.constraints import choice_grammar, lark_grammar, regex_grammar
    from larksong.grammars.answers.response_format import calls_or_answer, response_grammar, response_widened
    from larksong.grammars.explain import Request, TurnExplanation, explain_turn
    from larksong.grammars.warming import warm_up

__all__ = [
    "BrokenFormat",
    "CallPolicy",
    "DuplicateTool",
    "GrammarsError",
    "InvalidConstraint",
    "InvalidSchema",
    "InvalidToolName",
    "Limits",
    "NoTools",
    "Options",
    "Request",
    "Tool",
    "TurnExplanation",
    "Unenforceable",
    "UnknownFormat",
    "UnsupportedKeyword",
    "Widened",
    "WireFormat",
    "add_format_file",
    "calls_or_answer",
    "choice_grammar",
    "explain_turn",
    "format_names",
    "lark_grammar",
    "read_parameters",
    "regex_grammar",
    "response_grammar",
    "response_widened",
    "warm_up",
    "wire_format",
]

# Imported when they are asked for: a request with tools needs none of them.
_LATER = {
    "choice_grammar": "answers.constraints",
    "lark_grammar": "answers.constraints",
    "regex_grammar": "answers.constraints",
    "calls_or_answer": "answers.response_format",
    "response_grammar": "answers.response_format",
    "response_widened": "answers.response_format",
    "Request": "explain",
    "TurnExplanation": "explain",
    "explain_turn": "explain",
    "warm_up": "warming",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
