"""The JSON-Schema-Test-Suite: what is compiled is exact, up to the spellings that docs/json_schema.md lists.

The counts are committed: a change of them is a change of what is supported.
"""

from pathlib import Path

import pytest

from larksong.grammars import Options
from tests.support.json_schema_suite import NotReachable, judge, suite

# Whole numbers that are written with a point, and a metaschema that switches validation off.
SPELLINGS = 8
EXPECTED = {
    ("draft2020-12", ""): {
        "schemas": 368,
        "tests": 1106,
        "refused": 11,
        "refused, remote or dynamic": 30,
        "valid refused": SPELLINGS + 1,
    },
    ("draft7", ""): {
        "schemas": 254,
        "tests": 837,
        "refused": 5,
        "refused, remote or dynamic": 13,
        "valid refused": SPELLINGS,
    },
    # A host name with an A-label.
    ("draft2020-12", "optional/format"): {"schemas": 22, "tests": 407, "refused": 5, "valid refused": 1},
    ("draft7", "optional/format"): {"schemas": 19, "tests": 352, "refused": 4, "valid refused": 1},
}


@pytest.fixture(scope="module")
def folder() -> Path:
    try:
        return suite()
    except NotReachable as error:
        pytest.skip(str(error))


@pytest.mark.parametrize(("draft", "part"), EXPECTED)
def test_no_invalid_instance_is_accepted_and_valid_ones_are_refused_for_their_spelling_only(
    folder: Path, draft: str, part: str
) -> None:
    counts, wrong = judge(folder, draft, part, Options(formats=bool(part)))
    print("\n".join(wrong))
    assert counts == EXPECTED[draft, part]
