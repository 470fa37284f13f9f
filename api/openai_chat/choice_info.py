"""What Larksong adds to an answer of any API."""

from __future__ import annotations

from larksong.api.openai_chat.schemas import ChoiceInfo
from larksong.api.turns.turn import TurnEnd


def choice_info(end: TurnEnd) -> ChoiceInfo:
    """What Larksong says of a choice beyond its API's words."""
    info: ChoiceInfo = {}
    if end.finished_calls is not None:
        info["finished_within_budget"] = list(end.finished_calls)
    if end.widened:
        info["warnings"] = [
            {"tool": each.tool, "pointer": each.pointer, "keyword": each.keyword, "valid": each.valid}
            for each in end.widened
        ]
    if end.compat:
        info["compat"] = list(end.compat)
    return info
