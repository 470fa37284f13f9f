"""Hypothesis strategies for tool schemas, their instances and near misses, and what a schema accepts.

The schemas keep to what both wire formats can enforce. Numbers keep to spellings that a grammar takes: whole
numbers without a point, at most 17 digits after it, exponents of two digits.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from random import Random
from typing import Any

from hypothesis import strategies as st
from jsonschema import Draft202012Validator

Schema = Mapping[str, Any]

KEYS = ("a", "b", "city", "days ahead", "é", 'q"', "line_count")
FREE_KEYS = ("other", "", "aa", "日本", "a\\b")
CHARACTERS = 'ab "\\\n/<>=\x00\x1f\x7fé中😀\u2028{}[],:0'
FLOATS = (0.5, -1.25, 1e-07, 1234.0625, 0.1)

text = st.text(st.sampled_from(CHARACTERS), max_size=6)
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(10**17), 10**17)
    | st.integers(-3, 12)
    | st.sampled_from(FLOATS)
    | text
)
keys = st.sampled_from(KEYS + FREE_KEYS)
json_values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=6,
)


# -- schemas

ENUM_VALUES: tuple[Any, ...] = (
    "a",
    "ab",
    "b c",
    "é",
    'x"\n',
    "12",
    1,
    12,
    -7,
    0.5,
    None,
    True,
    False,
    [1, "a"],
    {"a": {"b": []}},
)


def schemas(depth: int = 2) -> st.SearchStrategy[dict[str, Any]]:
    """Schemas that something satisfies, nested at most `depth` levels."""
    kinds = [
        st.sampled_from(["string", "integer", "number", "boolean", "null"]).map(lambda name: {"type": name}),
        lengths(),
        enums(),
        st.sampled_from(ENUM_VALUES).map(lambda value: {"const": value}),
        st.lists(
            st.sampled_from(["string", "integer", "number", "boolean", "null"]), min_size=1, unique=True
        ).map(lambda names: {"type": names}),
        st.just({"description": "anything at all"}),
    ]
    if depth > 0:
        kinds += [arrays(depth), objects(depth), unions(depth)]
    return nullable(st.one_of(kinds))


@st.composite
def lengths(draw: st.DrawFn) -> dict[str, Any]:
    schema: dict[str, Any] = {
        "type": draw(st.sampled_from(["string", ["string", "null"], ["integer", "string"]]))
    }
    lower = draw(st.none() | st.integers(0, 3))
    upper = draw(st.none() | st.integers(lower or 0, 6))
    if lower is not None:
        schema["minLength"] = lower
    if upper is not None:
        schema["maxLength"] = upper
    return schema


@st.composite
def enums(draw: st.DrawFn) -> dict[str, Any]:
    values = draw(st.lists(st.sampled_from(ENUM_VALUES), min_size=1, max_size=5, unique_by=json.dumps))
    schema: dict[str, Any] = {"enum": values}
    strings = [value for value in values if isinstance(value, str)]
    if strings and draw(st.booleans()):
        schema["type"] = "string"
    return schema


@st.composite
def arrays(draw: st.DrawFn, depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "array"}
    if draw(st.booleans()):
        schema["items"] = draw(schemas(depth - 1))
    lower = draw(st.none() | st.integers(0, 2))
    upper = draw(st.none() | st.integers(lower or 0, 3))
    if lower is not None:
        schema["minItems"] = lower
    if upper is not None:
        schema["maxItems"] = upper
    return schema


@st.composite
def objects(draw: st.DrawFn, depth: int) -> dict[str, Any]:
    schema = draw(parameters(depth))
    extra = draw(st.sampled_from(["absent", "no", "yes", "typed"]))
    if extra in ("no", "yes"):
        schema["additionalProperties"] = extra == "yes"
    if extra == "typed":
        schema["additionalProperties"] = draw(schemas(depth - 1))
    return schema


@st.composite
def unions(draw: st.DrawFn, depth: int) -> dict[str, Any]:
    branches = draw(st.lists(schemas(depth - 1), min_size=1, max_size=3))
    if draw(st.booleans()):
        branches.append({"type": "null"})
    return {"anyOf": branches}


@st.composite
def nullable(draw: st.DrawFn, inner: st.SearchStrategy[dict[str, Any]]) -> dict[str, Any]:
    schema = draw(inner)
    return {**schema, "nullable": True} if draw(st.integers(0, 9)) == 0 else schema


@st.composite
def parameters(draw: st.DrawFn, depth: int = 2) -> dict[str, Any]:
    """A tool's parameters: an object schema that both formats can carry."""
    names = draw(st.lists(st.sampled_from(KEYS), max_size=4, unique=True))
    required = [name for name in names if draw(st.booleans())]
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {name: draw(schemas(depth - 1)) for name in names},
    }
    if required or draw(st.booleans()):
        schema["required"] = required
    return schema


# -- what a schema accepts


def meaning(schema: Any, *, closed: bool = False) -> Any:
    """The schema in plain JSON Schema. `closed`: a tool's parameters have the declared names alone."""
    if not isinstance(schema, Mapping):
        return schema
    plain = {keyword: value for keyword, value in schema.items() if keyword != "nullable"}
    if closed and "additionalProperties" not in plain:
        plain["additionalProperties"] = False
        undeclared = [name for name in plain.get("required", ()) if name not in plain.get("properties", {})]
        plain["properties"] = {**plain.get("properties", {}), **dict.fromkeys(undeclared, True)}
    if "properties" in plain:
        plain["properties"] = {name: meaning(sub) for name, sub in plain["properties"].items()}
    for keyword in ("items", "additionalProperties"):
        if keyword in plain:
            plain[keyword] = meaning(plain[keyword])
    if "anyOf" in plain:
        plain["anyOf"] = [meaning(branch) for branch in plain["anyOf"]]
    return {"anyOf": [plain, {"type": "null"}]} if schema.get("nullable") else plain


class Members(list[tuple[str, Any]]):
    """The members of a JSON object as they were written, repeated ones too."""


def load_members(data: str | bytes) -> Any:
    """JSON with `Members` for objects; ValueError for what is not JSON."""
    return json.loads(data, object_pairs_hook=Members, parse_constant=_refuse)


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def plain(value: Any) -> Any:
    """The value with dicts for `Members`."""
    if isinstance(value, Members):
        return {name: plain(member) for name, member in value}
    return [plain(item) for item in value] if isinstance(value, list) else value


def repeats(value: Any) -> bool:
    """Whether some object of the value has a name twice."""
    if isinstance(value, Members):
        names = [name for name, _ in value]
        return len(set(names)) < len(names) or any(repeats(member) for _, member in value)
    return isinstance(value, list) and any(repeats(item) for item in value)


def conforms(schema: Any, value: Any) -> bool:
    """Whether a grammar should take the value: the schema does, and no declared member comes twice.

    `schema` as `meaning` gives it, `value` as `load_members` does. Where no name is repeated, this is what
    jsonschema says.
    """
    if not isinstance(schema, Mapping):
        return bool(schema)
    if ("enum" in schema or "const" in schema) and repeats(value):
        return False
    if "anyOf" in schema and not any(conforms(branch, value) for branch in schema["anyOf"]):
        return False
    shallow = {
        keyword: schema[keyword]
        for keyword in ("type", "enum", "const", "required", "minItems", "maxItems", "minLength", "maxLength")
        if keyword in schema
    }
    if not Draft202012Validator(shallow).is_valid(plain(value)):
        return False
    if isinstance(value, Members):
        declared = schema.get("properties", {})
        extra = schema.get("additionalProperties", True)
        names = [name for name, _ in value if name in declared]
        return len(set(names)) == len(names) and all(
            conforms(declared.get(name, extra), member) for name, member in value
        )
    if isinstance(value, list):
        return all(conforms(schema.get("items", True), item) for item in value)
    return True


# -- instances


@st.composite
def instances(draw: st.DrawFn, schema: Any) -> Any:
    """A value that the schema (as `meaning` gives it) takes, members in any order."""
    if not isinstance(schema, Mapping):
        return draw(json_values)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return draw(st.sampled_from([v for v in schema["enum"] if Draft202012Validator(schema).is_valid(v)]))
    if "anyOf" in schema:
        return draw(instances(draw(st.sampled_from(schema["anyOf"]))))
    types = schema.get("type")
    name = draw(st.sampled_from(types)) if isinstance(types, list) else types
    match name:
        case "object":
            return draw(_object_instances(schema))
        case "array":
            items = instances(schema.get("items", True))
            lower = schema.get("minItems", 0)
            return draw(st.lists(items, min_size=lower, max_size=schema.get("maxItems", lower + 2)))
        case "string":
            lower = schema.get("minLength", 0)
            upper = schema.get("maxLength", lower + 6)
            return draw(st.text(st.sampled_from(CHARACTERS), min_size=lower, max_size=upper))
        case "integer":
            return draw(st.integers(-(10**17), 10**17) | st.integers(-3, 12))
        case "number":
            return draw(st.integers(-3, 12) | st.sampled_from(FLOATS))
        case "boolean":
            return draw(st.booleans())
        case "null":
            return None
    return draw(json_values)


@st.composite
def _object_instances(draw: st.DrawFn, schema: Schema) -> dict[str, Any]:
    declared, required = schema.get("properties", {}), schema.get("required", ())
    extra = schema.get("additionalProperties", True)
    members = {
        name: draw(instances(sub))
        for name, sub in declared.items()
        if name in required or draw(st.booleans())
    }
    if extra is not False:
        for name in draw(st.lists(st.sampled_from(FREE_KEYS), max_size=2, unique=True)):
            if name not in declared:
                members[name] = draw(instances(extra))
    return dict(draw(st.permutations(list(members.items()))))


@st.composite
def near_misses(draw: st.DrawFn, valid: Any) -> Any:
    """The value with one change somewhere: it may be invalid, or valid still."""
    if isinstance(valid, dict) and valid and draw(st.booleans()):
        name = draw(st.sampled_from(sorted(valid)))
        return {**valid, name: draw(near_misses(valid[name]))}
    if isinstance(valid, list) and valid and draw(st.booleans()):
        at = draw(st.integers(0, len(valid) - 1))
        return [*valid[:at], draw(near_misses(valid[at])), *valid[at + 1 :]]
    if isinstance(valid, dict) and draw(st.integers(0, 4)):
        if valid and draw(st.booleans()):
            return {name: valid[name] for name in valid if name != draw(st.sampled_from(sorted(valid)))}
        return {**valid, draw(keys): draw(json_values)}
    if isinstance(valid, list) and draw(st.integers(0, 4)):
        return valid[:-1] if valid and draw(st.booleans()) else [*valid, draw(json_values)]
    if isinstance(valid, str) and draw(st.booleans()):
        return valid[:-1] if valid and draw(st.booleans()) else valid + draw(text)
    return draw(json_values)


# -- spellings


def spell(value: Any, rng: Random, *, compact: bool, ascii_only: bool) -> str:
    """`json.dumps(value)`, but now and then a member is written a second time, changed or not."""
    options: dict[str, Any] = {
        "separators": (",", ":") if compact else (", ", ": "),
        "ensure_ascii": ascii_only,
    }

    def write(part: Any) -> str:
        if isinstance(part, dict):
            members = list(part.items())
            if members and rng.random() < 0.1:
                name, member = rng.choice(members)
                members.insert(rng.randint(0, len(members)), (name, rng.choice([member, None, "again"])))
            written = [
                json.dumps(name, **options) + options["separators"][1] + write(m) for name, m in members
            ]
            return "{" + options["separators"][0].join(written) + "}"
        if isinstance(part, list):
            return "[" + options["separators"][0].join(map(write, part)) + "]"
        return json.dumps(part, **options)

    return write(value)


def has_composite_constants(schema: Any) -> bool:
    """Whether an enum or const holds an array or object that is not empty: those have one spelling."""
    return any(isinstance(value, dict | list) and value for value in _constants(schema))


def all_ascii(schema: Any, value: Any) -> bool:
    """Whether names and constants are ASCII: those have one spelling, without escapes that are not needed."""
    return json.dumps([schema, _names(value)]) == json.dumps([schema, _names(value)], ensure_ascii=False)


def _constants(schema: Any) -> Iterable[Any]:
    if isinstance(schema, Mapping):
        yield from schema.get("enum", ())
        if "const" in schema:
            yield schema["const"]
        for sub in (*schema.get("properties", {}).values(), *schema.get("anyOf", ())):
            yield from _constants(sub)
        for keyword in ("items", "additionalProperties"):
            yield from _constants(schema.get(keyword))


def _names(value: Any) -> Sequence[Any]:
    if isinstance(value, dict):
        return [*value, *map(_names, value.values())]
    return list(map(_names, value)) if isinstance(value, list) else []
