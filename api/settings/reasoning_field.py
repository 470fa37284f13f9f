"""Where answers have reasoning, as a setting."""

from __future__ import annotations

from typing import Literal

ReasoningField = Literal["reasoning_content", "reasoning", "both"]
"""one of the two names that clients know for it, or both"""
