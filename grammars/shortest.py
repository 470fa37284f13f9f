"""The shortest text of a type, in closed form: what it takes to finish a call whose grammar was never built.

It is exactly the text that the search over the built grammar finds (`larksong.engine.closing`), down to the
choice between texts of one length: the first by its bytes. A test holds the two together.
"""

from __future__ import annotations

from larksong.grammars.schema import (
    AnyType,
    ArrayType,
    BooleanType,
    EnumType,
    NullType,
    NumberType,
    ObjectType,
    StringType,
    Type,
    UnionType,
    json_text,
)


def shorter(*texts: str) -> str:
    """The shortest text in bytes, of equal ones the first by its bytes."""
    return min(texts, key=lambda text: (len(text.encode()), text.encode()))


def blanks(type_: StringType) -> str:
    """The shortest string of a type."""
    return " " * type_.minimum


def shortest_json(type_: Type) -> str:
    """The shortest JSON text of a type."""
    match type_:
        case AnyType() | NumberType():
            return "0"
        case StringType():
            return f'"{blanks(type_)}"'
        case BooleanType():
            return "true"
        case NullType():
            return "null"
        case EnumType(values):
            return shorter(*values)
        case ArrayType(items, minimum):
            return f"[{','.join([shortest_json(items)] * minimum)}]"
        case ObjectType(properties, required):
            members = (
                f"{json_text(key)}:{shortest_json(value)}" for key, value in properties if key in required
            )
            return f"{{{','.join(members)}}}"
        case UnionType(options):
            return shorter(*map(shortest_json, options))
