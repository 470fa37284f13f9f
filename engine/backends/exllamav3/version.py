"""Which exllamav3 is installed, and what was tried with it."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

TESTED = frozenset({"1.6.5"})
"""The versions that have passed tests/exllamav3. Forced tokens go through a hook that is not a promise of
exllamav3's, so with any other version they are off."""


def installed() -> str | None:
    """The version of exllamav3 that is installed, None where there is none."""
    try:
        return version("exllamav3")
    except PackageNotFoundError:
        return None
