"""Our filter in the real generator."""

import pytest

from larksong.engine.backends.exllamav3.filter import MatcherFilter
from tests.exllamav3.contract import CASES, Case
from tests.exllamav3.rig import Rig


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_the_filter(rig: Rig, case: Case) -> None:
    case(rig, MatcherFilter)
