from pathlib import Path

import pytest
from pydantic import ValidationError

from larksong.api.settings.settings import Settings
from larksong.api.turns.schema_policy import DEFAULT_POLICY
from larksong.engine.backends.exllamav3.settings import ExllamaV3Settings
from larksong.grammars import Limits, Options


def test_the_defaults_serve_the_small_model_on_this_machine_alone() -> None:
    settings = Settings()
    assert (settings.host, settings.port) == ("127.0.0.1", 8000)
    assert (settings.model, settings.format) == ("SmolLM2-135M-Instruct", "qwen3_coder")


def test_the_environment_sets_what_no_flag_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LARKSONG_PORT", "9000")
    monkeypatch.setenv("LARKSONG_FORMAT", "hermes")
    assert (Settings().port, Settings().format) == (9000, "hermes")
    assert Settings(port=9001).port == 9001


def test_format_files_are_several_with_commas_between_them_or_a_list(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert Settings().format_file == ()
    monkeypatch.chdir(tmp_path)
    Path("larksong.toml").write_text('format_file = ["a.py", "b.py"]')
    assert Settings().format_file == (Path("a.py"), Path("b.py"))
    monkeypatch.setenv("LARKSONG_FORMAT_FILE", "c.py, d/e.py")
    assert Settings().format_file == (Path("c.py"), Path("d/e.py"))


def test_what_happens_to_schemas_can_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (Settings().unenforceable, Settings().schema_formats) == (None, True)
    monkeypatch.setenv("LARKSONG_UNENFORCEABLE", "refuse")
    monkeypatch.setenv("LARKSONG_SCHEMA_FORMATS", "false")
    assert (Settings().unenforceable, Settings().schema_formats) == ("refuse", False)


def test_the_limits_of_schemas_can_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Settings().schema_policy() == DEFAULT_POLICY
    monkeypatch.setenv("LARKSONG_MAX_SCHEMA_DEPTH", "7")
    policy = Settings(
        max_schema_parts=1,
        max_schema_places=2,
        max_schema_names=3,
        max_tuple_items=8,
        max_text_characters=9,
        max_enum_values=4,
        max_alternatives=5,
        max_pattern_characters=6,
        max_schema_seconds=0.5,
        unenforceable="widen",
    ).schema_policy()
    assert policy.limits == Limits(
        schemas=1,
        nodes=2,
        keys=3,
        enum_values=4,
        alternatives=5,
        pattern_characters=6,
        depth=7,
        tuple_items=8,
        text_characters=9,
        seconds=0.5,
    )
    assert policy.options(True) == Options(widen=True, limits=policy.limits)


@pytest.mark.parametrize(
    "wrong",
    [
        {"port": 70_000},
        {"max_schema_depth": 0},
        {"max_schema_seconds": 0},
        {"log_level": "loud"},
        {"unenforceable": "maybe"},
        {"api_key": ""},
        {"api_key": " , "},
    ],
)
def test_a_wrong_value_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Settings.model_validate(wrong)


def test_the_settings_of_exllamav3_reach_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Settings().exllamav3() == ExllamaV3Settings()
    monkeypatch.setenv("LARKSONG_MAX_BATCH", "8")
    settings = Settings(
        backend="exllamav3", cache_bits="6,5", gpu_split="20,24.5", requeue_tokens=0, ngram_draft=3
    )
    made = settings.exllamav3()
    assert (made.max_batch, made.cache_bits, made.gpu_split) == (8, (6, 5), (20.0, 24.5))
    assert (made.requeue_tokens, made.ngram_draft) == (None, 3)
    assert Settings(cache_bits="8").exllamav3().cache_bits == (8, 8)


def test_numbers_and_lists_of_a_toml_file_are_settings_of_exllamav3_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "larksong.toml"
    file.write_text("cache_bits = [6, 5]\ngpu_split = [20, 24.5, 0]\n")
    monkeypatch.setenv("LARKSONG_CONFIG", str(file))
    made = Settings().exllamav3()
    assert (made.cache_bits, made.gpu_split) == ((6, 5), (20.0, 24.5, 0.0))
    file.write_text('cache_bits = 8\ngpu_split = 20\ndevice = ""\n')
    made = Settings().exllamav3()
    assert (made.cache_bits, made.gpu_split, made.device) == ((8, 8), (20.0,), None)
    file.write_text("device = 1\n")
    monkeypatch.setenv("LARKSONG_CACHE_BITS", "")
    made = Settings().exllamav3()
    assert (made.cache_bits, made.device) == (None, "1")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"cache_bits": "9"}, "whole numbers from 2 to 8"),
        ({"cache_bits": "x"}, "numbers with commas"),
        ({"gpu_split": "20;24"}, "numbers with commas"),
        ({"cache_bits": [8, 4.5]}, "whole numbers from 2 to 8"),
        ({"gpu_split": [20, "x"]}, "numbers with commas"),
        ({"draft_model": "a", "ngram_draft": 2}, "exclude each other"),
        ({"tensor_parallel": True, "device": "cuda:0"}, "leave device out"),
    ],
)
def test_settings_of_exllamav3_that_cannot_be_are_refused(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        Settings.model_validate(wrong)
