"""Wire formats and JSON Schema: from the tools of a request to a grammar."""

from larksong.grammars.errors import (
    DuplicateTool,
    GrammarsError,
    InvalidSchema,
    InvalidToolName,
    NoTools,
    UnknownFormat,
    UnsupportedKeyword,
)
from larksong.grammars.formats import format_names, wire_format
from larksong.grammars.tools import CallPolicy, Tool
from larksong.grammars.wire_format import WireFormat

__all__ = [
    "CallPolicy",
    "DuplicateTool",
    "GrammarsError",
    "InvalidSchema",
    "InvalidToolName",
    "NoTools",
    "Tool",
    "UnknownFormat",
    "UnsupportedKeyword",
    "WireFormat",
    "format_names",
    "wire_format",
]
