"""Grammar-driven decoding: masks out, tokens in, parse events out. No model library, no HTTP.

What programs need is importable from here, and each name is loaded when it is first used. Backends, which run
models, are imported by their own paths: `larksong.engine.backends.transformers` and its neighbours.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from larksong.engine.automata.text_until import Stop as Stop
    from larksong.engine.budget import Budgeted as Budgeted
    from larksong.engine.cursor import Cursor as Cursor
    from larksong.engine.engine import Engine as Engine
    from larksong.engine.errors import EngineError as EngineError
    from larksong.engine.errors import GrammarConflict as GrammarConflict
    from larksong.engine.errors import InvalidPattern as InvalidPattern
    from larksong.engine.errors import NoEndToken as NoEndToken
    from larksong.engine.errors import UnsupportedPattern as UnsupportedPattern
    from larksong.engine.events import CallClose as CallClose
    from larksong.engine.events import Content as Content
    from larksong.engine.events import Events as Events
    from larksong.engine.events import FunctionOpen as FunctionOpen
    from larksong.engine.events import Json as Json
    from larksong.engine.events import Name as Name
    from larksong.engine.events import ParameterClose as ParameterClose
    from larksong.engine.events import ParameterOpen as ParameterOpen
    from larksong.engine.events import ParseEvent as ParseEvent
    from larksong.engine.events import Reasoning as Reasoning
    from larksong.engine.events import Text as Text
    from larksong.engine.explain import Explanation as Explanation
    from larksong.engine.forced import Encode as Encode
    from larksong.engine.grammar.grammar import Grammar as Grammar
    from larksong.engine.grammar.grammar import Rule as Rule
    from larksong.engine.grammar.grammar import Terminal as Terminal
    from larksong.engine.grammar.terminals import Choice as Choice
    from larksong.engine.grammar.terminals import JsonString as JsonString
    from larksong.engine.grammar.terminals import Literal as Literal
    from larksong.engine.grammar.terminals import Number as Number
    from larksong.engine.grammar.terminals import Pattern as Pattern
    from larksong.engine.grammar.terminals import Role as Role
    from larksong.engine.grammar.terminals import Special as Special
    from larksong.engine.grammar.terminals import TextUntil as TextUntil
    from larksong.engine.matcher import Matcher as Matcher
    from larksong.engine.vocabulary import Vocabulary as Vocabulary
    from larksong.engine.vocabulary import VocabularyError as VocabularyError

_NAMES = {
    "automata.text_until": ("Stop",),
    "budget": ("Budgeted",),
    "cursor": ("Cursor",),
    "engine": ("Engine",),
    "errors": ("EngineError", "GrammarConflict", "InvalidPattern", "NoEndToken", "UnsupportedPattern"),
    "events": (
        "CallClose",
        "Content",
        "Events",
        "FunctionOpen",
        "Json",
        "Name",
        "ParameterClose",
        "ParameterOpen",
        "ParseEvent",
        "Reasoning",
        "Text",
    ),
    "explain": ("Explanation",),
    "forced": ("Encode",),
    "grammar.grammar": ("Grammar", "Rule", "Terminal"),
    "grammar.terminals": (
        "Choice",
        "JsonString",
        "Literal",
        "Number",
        "Pattern",
        "Role",
        "Special",
        "TextUntil",
    ),
    "matcher": ("Matcher",),
    "vocabulary": ("Vocabulary", "VocabularyError"),
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names}

__all__ = sorted(_MODULES)

if not TYPE_CHECKING:  # mypy would take any name for one that exists

    def __getattr__(name: str) -> object:
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
        globals()[name] = value
        return value
