"""Random sets of tools and call policies, for properties that hold for all of them."""

from hypothesis import strategies as st

from larksong.grammars import CallPolicy, Tool
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
