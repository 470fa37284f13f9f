"""Why a text was refused: the keyword of the schema that refuses it, or the field of the request."""

from larksong.grammars.explain.blame import Wanted
from larksong.grammars.explain.request import Request
from larksong.grammars.explain.turn import TurnExplanation, explain_turn
from larksong.grammars.explain.why import Why

__all__ = ["Request", "TurnExplanation", "Wanted", "Why", "explain_turn"]
