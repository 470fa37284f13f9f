"""xgrammar: pushdown automata with masks precomputed a grammar, in C++.

Two ways to compile: everything at once, or parts when a mask first needs them (`enable_dynamic_compilation`).
Both take the grammars that xgrammar itself has for these model families.
"""

from __future__ import annotations

import json
from functools import lru_cache, partial
from importlib.metadata import version
from typing import Any

import torch
import xgrammar
from transformers import PreTrainedTokenizerFast

from benchmarks.contender import Forced, Words
from benchmarks.workload import Workload
from larksong.api.commands.bench.timing import Cursor
from larksong.api.commands.bench.workload import Request

_CACHE_BYTES = 1 << 30  # 200 tools take some 50 MB
_FAMILIES = {"hermes": "qwen_3", "qwen3_coder": "qwen_3_coder"}


@lru_cache(maxsize=1)
def _tokenizer_info(workload: Workload) -> xgrammar.TokenizerInfo:
    """xgrammar's reading of the vocabulary, which all its compilers can share."""
    tokenizer = PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_file=str(workload.file), eos_token=workload.eos
    )
    return xgrammar.TokenizerInfo.from_huggingface(
        tokenizer, vocab_size=workload.width, stop_token_ids=[workload.eos_id]
    )


class XGrammar:
    """One thread, xgrammar's own cache of compiled grammars."""

    def __init__(self, workload: Workload, *, dynamic: bool) -> None:
        torch.set_num_threads(1)
        self.name = "xgrammar, dynamic" if dynamic else "xgrammar"
        self.learns = dynamic  # such a grammar fills up while it is used
        self._compiler = xgrammar.GrammarCompiler(
            _tokenizer_info(workload),
            max_threads=1,
            cache_limit_bytes=_CACHE_BYTES,
            enable_dynamic_compilation=dynamic,
        )
        self._bitmask = xgrammar.allocate_token_bitmask(1, workload.width)
        self._words: Words = self._bitmask[0].numpy()

    def version(self) -> str:
        return version("xgrammar")

    def compile(self, request: Request) -> xgrammar.CompiledGrammar:
        if request.schema is not None:
            return self._compiler.compile_json_schema(json.dumps(request.schema))
        tools: list[Any] = [
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.parameters,
                    "strict": True,
                },
            }
            for tool in request.tools
        ]
        tag = xgrammar.get_model_structural_tag(
            _FAMILIES[request.format], tools=tools, tool_choice="required", reasoning=False
        )
        return self._compiler.compile_structural_tag(tag)

    def begin(self, grammar: xgrammar.CompiledGrammar) -> Cursor:
        matcher = xgrammar.GrammarMatcher(grammar)
        mask = partial(matcher.fill_next_token_bitmask, self._bitmask)
        return Cursor(mask, matcher.accept_token, matcher.is_terminated, matcher)

    def packed(self, cursor: Cursor) -> Words:
        return self._words

    def forced(self, cursor: Cursor) -> Forced | None:
        forced: Forced = cursor.owner.find_jump_forward_tokens
        return forced
