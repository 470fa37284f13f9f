"""Random sets of tools and call policies, for properties that hold for all of them."""

from collections.abc import Sequence

from hypothesis import reject
from hypothesis import strategies as st

from larksong.engine.grammar.grammar import Grammar
from larksong.engine.vocabulary import Vocabulary
from larksong.grammars import CallPolicy, GrammarsError, Tool, wire_format
from tests.support.schemas import parameters


@st.composite
def some_tools(draw: st.DrawFn) -> list[Tool]:
    """One to three tools whose names share their beginning."""
    return [Tool(f"read{'_file' * i}", parameters=draw(parameters())) for i in range(draw(st.integers(1, 3)))]


policies = st.sampled_from([
    CallPolicy(),
    CallPolicy(required=True, min_calls=1),
    CallPolicy(required=True, min_calls=1, max_calls=1, only="read"),
    CallPolicy(required=True, min_calls=2, max_calls=3),
])  # fmt: skip


def of_kind(kind: str, name: str) -> str:
    """A kind of vocabulary that suits the format: either all of its markers are tokens, or none of them."""
    return "letters" if kind == "markers" and name not in ("hermes", "qwen3_coder") else kind


def grammar_of(name: str, tools: Sequence[Tool], policy: CallPolicy, vocabulary: Vocabulary) -> Grammar:
    """The grammar of a format; an example that the format cannot carry does not count."""
    try:
        return wire_format(name).grammar(tools, policy, vocabulary)
    except GrammarsError:
        reject()
