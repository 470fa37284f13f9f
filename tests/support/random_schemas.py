"""Random schemas of nearly all keywords, and instances, over few names and values so that they meet."""

from random import Random
from typing import Any

KEYS = ("a", "b", "ab", "c", "x1")
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, 2, -1, 5, 10, 1.5, 0.25, "", "a", "b", "ab", "abc", "x1", "é"),
    *([], [1], ["a"], {}, {"a": 1}),
)
PATTERNS = ("^a", "b$", "^[a-c]*$", "x", "^.{2,3}$", "[0-9]")
_SIMPLE = ("type", "values", "number", "string", "any")
_NESTED = (
    *_SIMPLE,
    "object",
    "object",
    "object",
    "array",
    "contains",
    "dependent",
    "union",
    "union",
    "not",
    "if",
    "beside",
)


def schema(rng: Random, depth: int) -> Any:
    """A schema with at most `depth` levels of schemas inside."""
    kind = rng.choice(_NESTED if depth > 0 else _SIMPLE)
    return _MAKERS[kind](rng, depth - 1)


def instance(rng: Random, depth: int) -> Any:
    choice = rng.random()
    if depth <= 0 or choice < 0.35:
        return rng.choice(VALUES)
    if choice < 0.7:
        return {rng.choice(KEYS): instance(rng, depth - 1) for _ in range(rng.randint(0, 3))}
    if choice < 0.9:
        return [instance(rng, depth - 1) for _ in range(rng.randint(0, 3))]
    return rng.choice((0, 1, 2, 3, 4, 0.5, "aa", "a1", "xb", -2))


def _maybe(rng: Random, chance: float, keywords: dict[str, Any], keyword: str, value: Any) -> None:
    if rng.random() < chance:
        keywords[keyword] = value


def _any(rng: Random, depth: int) -> Any:
    return rng.choice((True, True, False, {}, {"type": "object"}, {"type": "boolean"}))


def _type(rng: Random, depth: int) -> Any:
    names = ("string", "integer", "number", "boolean", "null", "object", "array")
    return {"type": rng.choice((*names, ["string", "null"], ["integer", "string"]))}


def _values(rng: Random, depth: int) -> Any:
    return (
        {"enum": rng.sample(VALUES, rng.randint(1, 4))}
        if rng.random() < 0.5
        else {"const": rng.choice(VALUES)}
    )


def _number(rng: Random, depth: int) -> Any:
    made: dict[str, Any] = {}
    _maybe(rng, 0.8, made, "type", rng.choice(("integer", "number")))
    for keyword in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"):
        _maybe(rng, 0.3, made, keyword, rng.choice((-1, 0, 1, 2, 5, 10)))
    if made.get("type") == "integer":
        _maybe(rng, 0.3, made, "multipleOf", rng.choice((1, 2, 3)))
    return made


def _string(rng: Random, depth: int) -> Any:
    made: dict[str, Any] = {}
    _maybe(rng, 0.8, made, "type", "string")
    _maybe(rng, 0.4, made, "minLength", rng.randint(0, 3))
    _maybe(rng, 0.4, made, "maxLength", rng.randint(0, 4))
    _maybe(rng, 0.4, made, "pattern", rng.choice(PATTERNS))
    return made


def _object(rng: Random, depth: int) -> Any:
    made: dict[str, Any] = {}
    names = rng.choice(({"pattern": rng.choice(PATTERNS)}, {"enum": ["a", "b"]}, {"maxLength": 1}))
    _maybe(rng, 0.8, made, "type", "object")
    _maybe(rng, 0.8, made, "properties", {k: schema(rng, depth) for k in rng.sample(KEYS, rng.randint(0, 3))})
    _maybe(rng, 0.5, made, "required", rng.sample(KEYS, rng.randint(1, 2)))
    _maybe(rng, 0.4, made, "additionalProperties", rng.choice((False, schema(rng, depth))))
    _maybe(rng, 0.25, made, "patternProperties", {rng.choice(PATTERNS): schema(rng, depth) for _ in range(2)})
    _maybe(rng, 0.15, made, "propertyNames", names)
    _maybe(rng, 0.15, made, "minProperties", rng.randint(0, 2))
    _maybe(rng, 0.15, made, "maxProperties", rng.randint(0, 3))
    return made


def _array(rng: Random, depth: int) -> Any:
    made: dict[str, Any] = {}
    _maybe(rng, 0.8, made, "type", "array")
    _maybe(rng, 0.7, made, "items", schema(rng, depth))
    _maybe(rng, 0.4, made, "prefixItems", [schema(rng, depth) for _ in range(rng.randint(1, 2))])
    _maybe(rng, 0.4, made, "minItems", rng.randint(0, 2))
    _maybe(rng, 0.4, made, "maxItems", rng.randint(0, 3))
    if rng.random() < 0.15:
        made = {**made, "uniqueItems": True, "items": {"enum": ["a", 1, True, None]}}
        made.pop("prefixItems", None)
    return made


def _contains(rng: Random, depth: int) -> Any:
    made: dict[str, Any] = {"type": "array", "contains": schema(rng, depth)}
    _maybe(rng, 0.4, made, "minContains", rng.randint(0, 2))
    _maybe(rng, 0.4, made, "maxContains", rng.randint(0, 2))
    _maybe(rng, 0.4, made, "items", schema(rng, depth))
    _maybe(rng, 0.4, made, "maxItems", rng.randint(1, 3))
    return made


def _dependent(rng: Random, depth: int) -> Any:
    made: dict[str, Any] = {
        "type": "object",
        "properties": {k: schema(rng, depth) for k in rng.sample(KEYS, 2)},
    }
    _maybe(rng, 0.6, made, "dependentRequired", {rng.choice(KEYS): rng.sample(KEYS, 1)})
    _maybe(rng, 0.5, made, "dependentSchemas", {rng.choice(KEYS): schema(rng, depth)})
    return made


def _union(rng: Random, depth: int) -> Any:
    return {rng.choice(("anyOf", "oneOf", "allOf")): [schema(rng, depth) for _ in range(rng.randint(1, 3))]}


def _not(rng: Random, depth: int) -> Any:
    return {"not": schema(rng, depth)}


def _if(rng: Random, depth: int) -> Any:
    return {"if": schema(rng, depth), "then": schema(rng, depth), "else": schema(rng, depth)}


def _beside(rng: Random, depth: int) -> Any:
    first = schema(rng, depth)
    made = dict(first) if isinstance(first, dict) else {}
    made.setdefault(rng.choice(("anyOf", "oneOf", "allOf")), [schema(rng, depth) for _ in range(2)])
    _maybe(rng, 0.2, made, "unevaluatedProperties", rng.choice((False, schema(rng, depth))))
    _maybe(rng, 0.15, made, "unevaluatedItems", False)
    return made


_MAKERS = {
    "any": _any,
    "type": _type,
    "values": _values,
    "number": _number,
    "string": _string,
    "object": _object,
    "array": _array,
    "contains": _contains,
    "dependent": _dependent,
    "union": _union,
    "not": _not,
    "if": _if,
    "beside": _beside,
}
