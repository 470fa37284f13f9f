"""What is wrong with a declaration's attributes: one lacks, is of another kind, or is misspelled."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any

from larksong.grammars.wire.declaration import FormatDeclaration
from larksong.grammars.wire.element_format import ElementFormat
from larksong.grammars.wire.json_format import JsonFormat

_NEEDED = ("name", "template", "call_start")
_TEXTS = (*_NEEDED, "open_template", "root", "section_start", "call_separator", "function_name_prefix")
_TUPLES = ("aliases", "opening", "open_function_name_prefixes")
_NEEDED_OF_ELEMENTS = ("arg_name_prefix", "forbidden_in_names")
_TEXTS_OF_ELEMENTS = (*_NEEDED_OF_ELEMENTS, "suffix_overlap")
_TUPLES_OF_ELEMENTS = ("arg_name_suffix", "arg_value_suffix", "function_close")
_PLACE = "name"
# So alike are `alias` and `aliases`; `function_open` and `function_close` are less so.
_ALIKE = 0.82


def attribute_flaws(format: FormatDeclaration) -> Iterator[str]:
    """What is wrong with them, in a sentence each."""
    needed, texts, tuples = [*_NEEDED], [*_TEXTS], [*_TUPLES]
    if isinstance(format, ElementFormat):
        needed += (*_NEEDED_OF_ELEMENTS, *_TUPLES_OF_ELEMENTS)
        texts += _TEXTS_OF_ELEMENTS
        tuples += _TUPLES_OF_ELEMENTS
    yield from _misspelled(format)
    for name in needed:
        if getattr(format, name, None) is None:
            yield f"its class says no {name}"
    for name in texts:
        if not isinstance(getattr(format, name), str):
            yield f"{name} must be a text"
    if not format.name:
        yield "its name is empty"
    for name in tuples:
        yield from _not_a_tuple(name, getattr(format, name))
    if isinstance(format, ElementFormat):
        if format.json_arg_name_suffix is not None:
            yield from _not_a_tuple("json_arg_name_suffix", format.json_arg_name_suffix)
        if not format.function_close:
            yield "function_close must have at least one text"
    if format.reasoning is not None and not (_is_tuple(format.reasoning) and len(format.reasoning) == 2):
        yield "reasoning must be a tuple of two texts, ('<think>', '</think>'), or None"
    yield from _bad_function_text(format)


def _not_a_tuple(name: str, value: Any) -> Iterator[str]:
    if not _is_tuple(value):
        yield f"{name} must be a tuple of texts" + (f": ({value!r},)" if isinstance(value, str) else "")


def _is_tuple(value: Any) -> bool:
    return isinstance(value, tuple) and all(isinstance(each, str) for each in value)


def _bad_function_text(format: FormatDeclaration) -> Iterator[str]:
    text: Any = format.function_text(_PLACE)
    if not isinstance(text, str):
        yield f"function_text must return a text, not {text!r}"
    elif not text.startswith(_PLACE) or text.count(_PLACE) != 1:
        yield (
            "function_text must begin with the name and hold it once; "
            "what stands before it is function_name_prefix"
        )


def _misspelled(format: FormatDeclaration) -> Iterator[str]:
    """Attributes that are nearly those of a declaration."""
    declaring = {*ElementFormat.__mro__, *JsonFormat.__mro__}
    known = {name for base in declaring for name in (*vars(base), *vars(base).get("__annotations__", ()))}
    for each in type(format).__mro__:
        if each in declaring:
            continue
        for name, value in vars(each).items():
            if name in known or name.startswith("_") or callable(value) or hasattr(value, "__get__"):
                continue
            for meant in get_close_matches(name, known, 1, _ALIKE):
                yield f"its class has {name}, which nothing reads: {meant}?"
