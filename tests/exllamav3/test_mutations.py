"""Copies of the filter that are broken on purpose: the contract must notice each."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

from larksong.engine.backends.exllamav3 import filter as original
from tests.exllamav3.contract import (
    CASES,
    Class,
    a_fault_ends_one_job_and_leaves_seven_alone,
    allows_the_last_id_of_the_vocabulary,
    an_empty_intersection_ends_one_job_with_a_clear_error,
    banned_strings_are_taken_back,
)
from tests.exllamav3.rig import Rig

MUTATIONS = {
    "raises": (
        "            self._fail(error)\n            mask = self._end\n",
        "            raise\n",
        a_fault_ends_one_job_and_leaves_seven_alone,
        "^on purpose$",  # it went through the generator
    ),
    "empty mask": (
        " and not mask.any():\n",
        " and False:\n",
        an_empty_intersection_ends_one_job_with_a_clear_error,
        "'no token in common' in 'token 0 at position 0 is not allowed",
    ),
    "wrong width": (
        "return self._tensor\n",
        "return self._tensor[:, :-1]\n",
        allows_the_last_id_of_the_vocabulary,
        r"assert \('end_filter', '7",  # the end was banned
    ),
    "no rollback": (
        "            self._matcher.rollback(num_tokens)\n",
        "            pass\n",
        banned_strings_are_taken_back,
        r"""assert \('""', 'stop_token', None\) == """,  # read on from where the banned text had led
    ),
}


def broken(old: str, new: str) -> Class:
    """A copy of the filter with `old` replaced by `new`."""
    source = Path(original.__file__).read_text(encoding="utf-8")
    assert source.count(old) == 1, "the mutation no longer fits the filter"
    module = ModuleType("broken_filter")
    sys.modules["broken_filter"] = module  # where dataclasses look for the names of annotations
    exec(compile(source.replace(old, new), "broken_filter", "exec"), module.__dict__)
    found: Class = module.MatcherFilter
    return found


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_broken_copy_of_the_filter_fails_the_contract(rig: Rig, name: str) -> None:
    old, new, case, why = MUTATIONS[name]
    assert case in CASES
    kind = broken(old, new)
    with pytest.raises(Exception, match=why):  # a failed assertion, or the generator itself dies
        case(rig, kind)


def test_an_unchanged_copy_passes(rig: Rig) -> None:
    kind = broken("words = -(-tokenizer", "words = -(-tokenizer")
    for case in (allows_the_last_id_of_the_vocabulary, banned_strings_are_taken_back):
        case(rig, kind)
