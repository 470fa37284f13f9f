"""What others import: all of it is there, and what a request with tools does not need comes later."""

import subprocess
import sys

import pytest

from larksong import grammars
from larksong.grammars import authoring


@pytest.mark.parametrize("module", [grammars, authoring], ids=["grammars", "authoring"])
def test_every_public_name_is_there(module: object) -> None:
    names = vars(module)["__all__"]
    assert names == sorted(names)
    for name in names:
        assert callable(getattr(module, name)) or name in ("Definition",), name


def test_a_name_that_is_not_there_is_missed_as_in_any_module() -> None:
    with pytest.raises(AttributeError, match=r"module 'larksong.grammars' has no attribute 'nothing'"):
        _ = grammars.nothing


def test_importing_the_grammars_loads_no_answers_and_nothing_that_explains() -> None:
    later = {f"larksong.grammars.{name}" for name in ("answers", "explain", "warming")}
    program = f"import sys, larksong.grammars; print(sorted({later!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
