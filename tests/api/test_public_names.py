"""`larksong.api` has what programs use, and loads it when it is asked for."""

import subprocess
import sys

import pytest

from larksong import api

EXLLAMAV3 = {"DeltaStream", "LarksongFilter"}
"""which tests/exllamav3 uses, where that library is"""


@pytest.mark.parametrize("name", sorted({*api.__all__} - EXLLAMAV3))
def test_a_public_name_is_there(name: str) -> None:
    assert getattr(api, name).__name__ == name
    assert name in dir(api)


def test_other_names_are_not() -> None:
    with pytest.raises(AttributeError, match="no attribute 'creat_app'"):
        _ = api.creat_app


def test_the_package_alone_loads_no_server() -> None:
    check = "import sys, larksong.api; print([name for name in ('fastapi', 'pydantic', 'numpy') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
