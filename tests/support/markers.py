"""Small vocabularies with and without the markers of all wire formats."""

from tests.support.vocabularies import vocabulary

MARKERS = (
    *("<tool_call>", "</tool_call>", "<think>", "</think>"),
    *("<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"),
    *("<minimax:tool_call>", "</minimax:tool_call>"),
    *(
        "<|tool_calls_section_begin|>",
        "<|tool_calls_section_end|>",
        "<|tool_call_begin|>",
        "<|tool_call_end|>",
    ),
    "<|tool_call_argument_begin|>",
    *("<|start|>", "<|channel|>", "<|message|>", "<|constrain|>", "<|end|>", "<|call|>"),
    *("[TOOL_CALLS]", "[CALL_ID]", "[ARGS]", "[THINK]", "[/THINK]"),
    *("<|tool_call>", "<tool_call|>", '<|"|>', "<|channel>", "<channel|>"),
)
PIECES = (b"\n\n", b'"}}', b'{"', b'": "', b"true", b"12", b"ab", b"<p", b'">\n', b"</", b"parameter>\n")

BY_LETTERS = vocabulary(PIECES)
BY_ID = vocabulary(PIECES, MARKERS)
