import io

import pytest
from rich.console import Console

from larksong.api.commands.demo import run
from larksong.api.settings.models import load_model
from larksong.api.settings.settings import Settings
from larksong.api.turns.model import Model
from larksong.grammars import wire_format
from tests.api.serving import Recorded

CITIES = ({"city": "Amsterdam", "unit": "celsius"}, {"city": "Tokyo", "unit": "fahrenheit"})
NOTE = {"city": "Amsterdam", "note": "Pack a raincoat, good shoes and a warm jumper."}


def _play(format: str, *texts: str) -> tuple[bool, str]:
    shown = io.StringIO()
    done = run(Model(Recorded(*texts), wire_format(format)), Console(file=shown, width=100))
    return done, shown.getvalue()


@pytest.mark.parametrize("format", ["qwen3_coder", "hermes"])
def test_the_demo_shows_request_calls_and_the_step_of_each_delta(format: str) -> None:
    render = wire_format(format).render_call
    cities = "\n".join(render("get_weather", call) for call in CITIES)
    done, shown = _play(format, cities, render("get_weather", NOTE))
    assert done
    for words in (
        '"tool_choice": "required"',
        '"min_tool_calls": 2',
        "Tokyo",
        "allowed",
        '"name": "get_weather"',
    ):
        assert words in shown
    assert shown.count('"arguments": ') > 20


def test_the_demo_fails_when_the_calls_do_not_come() -> None:
    render = wire_format("qwen3_coder").render_call
    one_call = render("get_weather", CITIES[0])
    done, shown = _play("qwen3_coder", one_call, render("get_weather", NOTE))
    assert not done
    assert "The generation failed" in shown


@pytest.mark.model
@pytest.mark.parametrize("format", ["qwen3_coder", "hermes"])
def test_the_small_model_makes_the_calls(format: str) -> None:
    shown = io.StringIO()
    assert run(load_model(Settings(format=format)), Console(file=shown, width=100)), shown.getvalue()
