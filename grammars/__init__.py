"""Wire formats and JSON Schema: from the tools of a request to a grammar."""

from larksong.grammars.errors import (
    DuplicateTool,
    GrammarsError,
    InvalidSchema,
    InvalidToolName,
    NoTools,
    Unenforceable,
    UnknownFormat,
    UnsupportedKeyword,
)
from larksong.grammars.formats import format_names, wire_format
from larksong.grammars.schema import Limits, Options, Widened
from larksong.grammars.tools import CallPolicy, Tool
from larksong.grammars.wire.wire_format import WireFormat

__all__ = [
    "CallPolicy",
    "DuplicateTool",
    "GrammarsError",
    "InvalidSchema",
    "InvalidToolName",
    "Limits",
    "NoTools",
    "Options",
    "Tool",
    "Unenforceable",
    "UnknownFormat",
    "UnsupportedKeyword",
    "Widened",
    "WireFormat",
    "format_names",
    "wire_format",
]
