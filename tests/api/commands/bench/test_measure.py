"""`larksong bench` reads its workload on any tokenizer."""

import io
from pathlib import Path

import pytest
from rich.console import Console
from tokenizers import Tokenizer

from larksong.api.commands.bench.measure import ALL_FORMATS, Case, LarksongBench, Situation, cases, run, take
from larksong.api.commands.bench.timing import Refused, Samples, Spread, time_turn
from larksong.api.commands.bench.workload import RESPONSE_FORMAT, request, turn
from larksong.engine.vocabulary import Vocabulary, VocabularyError
from tests.support.tokenizers import EOS


@pytest.fixture(scope="module")
def contender(
    byte_tokenizer: Tokenizer, byte_vocabulary: Vocabulary, tmp_path_factory: pytest.TempPathFactory
) -> LarksongBench:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LARKSONG_CACHE", str(tmp_path_factory.mktemp("cache")))
        return LarksongBench(byte_vocabulary, byte_tokenizer)


def _ids(tokenizer: Tokenizer, vocabulary: Vocabulary, format: str, number: int) -> list[int]:
    text = turn(number).text(format)
    return [*tokenizer.encode(text, add_special_tokens=False).ids, *vocabulary.eos_ids]


# Every format with new tools, and each situation with one kind of format.
TRIED = [
    case
    for case in cases(ALL_FORMATS, (10,))
    if case.situation is Situation.TOOLS or case.format in ("hermes", "qwen3_coder", RESPONSE_FORMAT)
]


@pytest.mark.parametrize("case", TRIED, ids=lambda case: f"{case.format}, {case.situation}")
def test_every_case_is_read_to_its_end(
    contender: LarksongBench, byte_tokenizer: Tokenizer, byte_vocabulary: Vocabulary, case: Case
) -> None:
    samples = Samples()
    take(
        samples,
        contender,
        case,
        1,
        lambda number: _ids(byte_tokenizer, byte_vocabulary, case.format, number),
    )
    figures = samples.figures(same_turn=case.same_turn)
    assert figures.tokens > 0
    assert figures.built_turn >= figures.turn > 0
    assert figures.mask.p50 <= figures.mask.p99 <= figures.mask.max <= figures.mask.total
    assert (figures.deltas is None) == (case.format == RESPONSE_FORMAT)


def test_passes_of_new_tools_ask_for_tools_of_their_own() -> None:
    case = Case("hermes", 10, Situation.TOOLS)
    assert case.request(1) != case.request(2)
    assert case.turn(1) == case.turn(2) == 0


def test_a_turn_that_is_refused_is_not_timed(
    contender: LarksongBench, byte_tokenizer: Tokenizer, byte_vocabulary: Vocabulary
) -> None:
    ids = _ids(byte_tokenizer, byte_vocabulary, "hermes", 0)
    with pytest.raises(Refused):
        time_turn(contender, request("qwen3_coder", 10), ids)


def test_a_spread_counts_all_steps() -> None:
    spread = Spread.of([1.0, 2.0, 3.0, 10.0])
    assert (spread.p50, spread.max, spread.total) == (2.5, 10.0, 16.0)


def test_a_table_is_printed_for_a_tokenizer_file(
    byte_tokenizer: Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LARKSONG_CACHE", str(tmp_path / "cache"))
    byte_tokenizer.save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "tokenizer_config.json").write_text(f'{{"eos_token": "{EOS}"}}')
    printed = io.StringIO()
    run(tmp_path, None, ["hermes"], 10, 1, Console(file=printed, width=100))
    assert all(situation in printed.getvalue() for situation in Situation)


def test_a_tokenizer_that_names_no_end_is_asked_for_one(byte_tokenizer: Tokenizer, tmp_path: Path) -> None:
    byte_tokenizer.save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(VocabularyError, match="--eos"):
        run(tmp_path, None, ["hermes"], 10, 1, Console(file=io.StringIO()))
