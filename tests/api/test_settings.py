import pytest
from pydantic import ValidationError

from larksong.api.settings import Settings


def test_the_defaults_serve_the_small_model_on_this_machine_alone() -> None:
    settings = Settings()
    assert (settings.host, settings.port) == ("127.0.0.1", 8000)
    assert (settings.model, settings.format) == ("SmolLM2-135M-Instruct", "qwen3_coder")


def test_the_environment_sets_what_no_flag_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LARKSONG_PORT", "9000")
    monkeypatch.setenv("LARKSONG_FORMAT", "hermes")
    assert (Settings().port, Settings().format) == (9000, "hermes")
    assert Settings(port=9001).port == 9001


def test_what_happens_to_schemas_can_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (Settings().unenforceable, Settings().schema_formats) == (None, True)
    monkeypatch.setenv("LARKSONG_UNENFORCEABLE", "refuse")
    monkeypatch.setenv("LARKSONG_SCHEMA_FORMATS", "false")
    assert (Settings().unenforceable, Settings().schema_formats) == ("refuse", False)


@pytest.mark.parametrize("wrong", [{"port": 70_000}, {"log_level": "loud"}, {"unenforceable": "maybe"}])
def test_a_wrong_value_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Settings.model_validate(wrong)
