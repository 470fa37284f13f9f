"""MaskBench: real JSON Schemas with valid and invalid instances, through Larksong, llguidance and xgrammar.

    make bench-maskbench DATA=FILE        FILE: JSON lines (may be gzipped), each {"name", "schema", "tests"}

Each test has an instance as `data` and whether it is `valid`. As in MaskBench itself
(guidance-ai/jsonschemabench) a schema passes if it compiles and all its instances are judged rightly, and two
times are taken: to the first mask (TTFM: from the schema's text on) and for each further mask (TBM: mask and
advance). The data has no licence: it is read where it lies.
"""

from __future__ import annotations

import argparse
import gzip
import importlib.util
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from tokenizers import Tokenizer

from larksong.api.runtime.gc_tuning import settle_down
from larksong.engine.engine import Engine
from larksong.engine.matcher import Matcher
from larksong.engine.packed import allows
from larksong.engine.vocabulary import Vocabulary
from larksong.grammars.answers.response_format import response_grammar
from larksong.grammars.errors import GrammarsError


class Refused(Exception):
    """The schema does not compile."""


class Sequence_(Protocol):
    def mask(self) -> Any: ...

    def allows(self, mask: Any, token: int) -> bool: ...

    def advance(self, token: int) -> bool: ...


class Contender(Protocol):
    """An engine: `compile` raises `Refused`; what it returns begins a sequence each time it is called."""

    name: str

    def compile(self, schema: Any) -> Callable[[], Sequence_]: ...


@dataclass
class Result:
    """What one engine did. Times in microseconds."""

    name: str
    schemas: int = 0
    passing: int = 0
    refused: int = 0
    valid_refused: int = 0
    invalid_accepted: int = 0
    first: list[float] = field(default_factory=list)
    masks: list[float] = field(default_factory=list)
    reasons: dict[str, int] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)


class LarksongSequence:
    def __init__(self, matcher: Matcher) -> None:
        self._matcher = matcher
        self.mask = matcher.mask

    def allows(self, mask: Any, token: int) -> bool:
        return allows(mask, token)

    def advance(self, token: int) -> bool:
        self._matcher.advance(token)
        return self._matcher.fault is None


class Larksong:
    name = "larksong"

    def __init__(self, tokenizer: Path, eos: str) -> None:
        self._vocabulary = Vocabulary.from_tokenizer(tokenizer, eos=[eos])
        self._engine = Engine(self._vocabulary)

    def compile(self, schema: Any) -> Callable[[], LarksongSequence]:
        try:
            grammar = response_grammar(schema, self._vocabulary)
        except GrammarsError as error:
            raise Refused(f"{error.keyword}: {str(error).rsplit(':', 1)[-1].strip()[:60]}") from error
        return lambda: LarksongSequence(self._engine.matcher(grammar))


class LLGuidanceSequence:
    def __init__(self, matcher: Any, words: Any) -> None:
        self._matcher, self._words = matcher, words
        self._place = words.ctypes.data, words.nbytes

    def mask(self) -> Any:
        self._matcher.unsafe_compute_mask_ptr(*self._place)
        return self._words

    def allows(self, mask: Any, token: int) -> bool:
        return allows(mask, token)

    def advance(self, token: int) -> bool:
        return bool(self._matcher.consume_token(token))


class LLGuidance:
    name = "llguidance"

    def __init__(self, tokenizer: Path, eos: str) -> None:
        import llguidance

        loaded = Tokenizer.from_file(str(tokenizer))
        width = loaded.get_vocab_size()
        self._matcher = llguidance.LLMatcher
        self._tokenizer = llguidance.LLTokenizer(
            tokenizer.read_text(encoding="utf-8"), n_vocab=width, eos_token=loaded.token_to_id(eos)
        )
        self._words = np.zeros((width + 31) // 32, np.int32)

    def compile(self, schema: Any) -> Callable[[], LLGuidanceSequence]:
        try:
            grammar = self._matcher.grammar_from_json_schema(json.dumps(schema))
            matcher = self._matcher(self._tokenizer, grammar, log_level=0)
        except Exception as error:
            raise Refused(str(error)[:80]) from error
        if matcher.is_error():
            raise Refused(matcher.get_error()[:80])
        return lambda: LLGuidanceSequence(matcher.deep_copy(), self._words)


class XGrammarSequence:
    def __init__(self, matcher: Any, bitmask: Any) -> None:
        self._matcher, self._bitmask, self._words = matcher, bitmask, bitmask[0].numpy()

    def mask(self) -> Any:
        self._matcher.fill_next_token_bitmask(self._bitmask)
        return self._words

    def allows(self, mask: Any, token: int) -> bool:
        return allows(mask, token)

    def advance(self, token: int) -> bool:
        return bool(self._matcher.accept_token(token))


class XGrammar:
    name = "xgrammar"

    def __init__(self, tokenizer: Path, eos: str) -> None:
        import torch
        import xgrammar
        from transformers import PreTrainedTokenizerFast

        torch.set_num_threads(1)
        loaded: Any = PreTrainedTokenizerFast(tokenizer_file=str(tokenizer), eos_token=eos)  # type: ignore[no-untyped-call]
        info = xgrammar.TokenizerInfo.from_huggingface(
            loaded, vocab_size=len(loaded), stop_token_ids=[loaded.convert_tokens_to_ids(eos)]
        )
        self._compiler = xgrammar.GrammarCompiler(info, max_threads=1, enable_dynamic_compilation=True)
        self._matcher = xgrammar.GrammarMatcher
        self._bitmask = xgrammar.allocate_token_bitmask(1, len(loaded))

    def compile(self, schema: Any) -> Callable[[], XGrammarSequence]:
        try:
            compiled = self._compiler.compile_json_schema(json.dumps(schema), any_whitespace=False)
        except Exception as error:
            raise Refused(str(error)[:80]) from error
        return lambda: XGrammarSequence(self._matcher(compiled), self._bitmask)


CONTENDERS: dict[str, Callable[[Path, str], Contender]] = {
    "larksong": Larksong,
    "llguidance": LLGuidance,
    "xgrammar": XGrammar,
}


Clock = Callable[[], float]


def measure(
    contender: Contender,
    case: dict[str, Any],
    tokens: Sequence[list[int]],
    result: Result,
    clock: Clock = time.perf_counter,
) -> None:
    """One schema with all its instances, each as the ids of its tokens with the end-of-sequence token."""
    result.schemas += 1
    begun = clock()
    try:
        begin = contender.compile(case["schema"])
        begin().mask()
    except Refused as refusal:
        result.refused += 1
        result.reasons[str(refusal)] = result.reasons.get(str(refusal), 0) + 1
        return
    result.first.append((clock() - begun) * 1e6)
    right = True
    for test, ids in zip(case["tests"], tokens, strict=True):
        accepted = read(begin(), ids, result.masks, clock)
        if accepted != test["valid"]:
            right = False
            if accepted:
                result.invalid_accepted += 1
            else:
                result.valid_refused += 1
            result.wrong.append(f"{'invalid accepted' if accepted else 'valid refused'}: {case['name']}")
    result.passing += right


def read(
    sequence: Sequence_, ids: Sequence[int], times: list[float], clock: Clock = time.perf_counter
) -> bool:
    """Whether all tokens are allowed, the end included."""
    for token in ids[:-1]:
        begun = clock()
        mask = sequence.mask()
        between = clock()
        if not sequence.allows(mask, token):
            return False
        resumed = clock()
        taken = sequence.advance(token)
        times.append((clock() - resumed + between - begun) * 1e6)
        if not taken:
            return False
    return sequence.allows(sequence.mask(), ids[-1])


def cases(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as lines:
        for line in lines:
            yield json.loads(line)


def percentiles(times: Sequence[float]) -> str:
    if not times:
        return "-"
    at = np.percentile(times, [50, 90, 99, 99.9])
    return f"{np.mean(times):.0f}/" + "/".join(f"{each:.0f}" for each in at) + f"/{max(times):.0f}"


def table(results: Sequence[Result]) -> str:
    lines = [
        "| engine | schemas | passing | refused | valid refused | invalid accepted "
        "| TBM avg/p50/p90/p99/p99.9/max µs | TTFM avg/p50/p90/p99/p99.9/max µs |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for r in results:
        share = f"{100 * r.passing / max(r.schemas, 1):.1f} %"
        counts = f"{r.name} | {r.schemas} | {share} | {r.refused} | {r.valid_refused} | {r.invalid_accepted}"
        lines.append(f"| {counts} | {percentiles(r.masks)} | {percentiles(r.first)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--tokenizer", type=Path, help="tokenizer.json; without it Qwen's is made")
    parser.add_argument("--eos", default="<|endoftext|>")
    parser.add_argument("--every", type=int, default=1, help="take only every n-th schema")
    parser.add_argument(
        "--processor-time", action="store_true", help="for a machine with other work: leave out waiting"
    )
    parser.add_argument("--engines", default=",".join(CONTENDERS))
    arguments = parser.parse_args()
    tokenizer = arguments.tokenizer or qwen()
    encoder = Tokenizer.from_file(str(tokenizer))
    end = encoder.token_to_id(arguments.eos)
    contenders = [
        CONTENDERS[name](tokenizer, arguments.eos)
        for name in arguments.engines.split(",")
        if name == "larksong" or importlib.util.find_spec(name)
    ]
    clock = time.thread_time if arguments.processor_time else time.perf_counter
    settle_down()  # as a server does once its model is loaded
    results = [Result(contender.name) for contender in contenders]
    for number, case in enumerate(cases(arguments.data)):
        if number % arguments.every:
            continue
        texts = [json.dumps(test["data"], ensure_ascii=False) for test in case["tests"]]
        tokens = [[*encoder.encode(text, add_special_tokens=False).ids, end] for text in texts]
        for contender, result in zip(contenders, results, strict=True):
            measure(contender, case, tokens, result, clock)
    print(table(results))
    for result in results:
        for reason, count in sorted(result.reasons.items(), key=lambda item: -item[1])[:20]:
            print(f"{result.name} refuses {count}: {reason}", file=sys.stderr)
        for line in result.wrong[:50]:
            print(f"{result.name}: {line}", file=sys.stderr)


def qwen() -> Path:
    from larksong.engine.backends.model_store import cache_folder
    from tests.support.qwen_tokenizer import qwen_tokenizer

    target = Path(cache_folder()) / "tests" / "qwen-tokenizer-v1.json"
    if not target.is_file():
        qwen_tokenizer()
    return target


if __name__ == "__main__":
    main()
