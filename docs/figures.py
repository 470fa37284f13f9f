"""Prints the figures that the pages of docs/ quote.

    make figures

Times are medians; the vocabulary is SmolLM2's.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from lark import Lark, Token
from rich.console import Console
from rich.table import Table
from rich.text import Text
from tokenizers import Tokenizer

from larksong.engine import Engine, JsonString, Matcher, TextUntil, Vocabulary
from larksong.engine.automata.regex import compile_regex
from larksong.engine.backends.model_folder import ModelFolder
from larksong.engine.backends.model_store import find_model
from larksong.engine.lexing.trie import Trie
from larksong.engine.parsing.tables import Symbols
from larksong.grammars import CallPolicy, Tool, wire_format
from larksong.grammars.formats.qwen3_coder import FORMAT as QWEN3_CODER
from larksong.grammars.schema import read_parameters
from larksong.grammars.warming import warm_up
from larksong.grammars.wire.elements import letter_stops

Row = tuple[str, str]
WRITE = Tool(
    "write",
    parameters={
        "type": "object",
        "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
        "required": ["path", "content"],
    },
)
CALL = wire_format("qwen3_coder").render_call(
    "write",
    {"path": "src/f.py", "content": "\n".join(f"def f_{i}(x):\n    return x + {i}\n" for i in range(40))},
)


def main() -> None:
    """All figures, page by page."""
    folder = ModelFolder.open(find_model())
    vocabulary, tokenizer = folder.vocabulary, folder.tokenizer
    console = Console()
    for page, rows in (
        ("docs/architecture.md", parsing()),
        ("docs/engine/lexing.md", lexing()),
        ("docs/engine/attributes.md", attributes()),
        ("docs/engine/masks.md", masks(vocabulary, tokenizer)),
    ):
        table = Table(title=page, title_justify="left", show_header=False)
        for row in rows:
            table.add_row(*map(Text, row))
        console.print(table)


def parsing() -> list[Row]:
    """A step of the engine's own tables beside one of Lark's InteractiveParser that can be taken back."""
    text = 'start: "a" list "z"\nlist: item | list "," item\nitem: "x" | "(" list ")"'
    lark = Lark(text, parser="lalr").parse_interactive("")
    word = [Token(name, "") for name in ["A", "LPAR", "LPAR", "X", "COMMA", "X", "RPAR", "COMMA", "X"]]

    def interactive() -> None:
        at = lark
        for token in word:
            at = at.copy(deepcopy_values=False)
            at.feed_token(token)

    # The engine's step with nothing cached: the same table, reductions on a list of links.
    table: Any = lark.parser_state.parse_conf.parse_table
    actions = {index: {str(k): v for k, v in row.items()} for index, row in table.states.items()}
    names = [token.type for token in word]

    def linked() -> None:
        stack: Any = (lark.parser_state.parse_conf.start_state, None)
        for name in names:
            while True:
                action, argument = actions[stack[0]][name]
                if action.name == "Shift":
                    stack = (argument, stack)
                    break
                for _ in argument.expansion:
                    stack = stack[1]
                stack = (actions[stack[0]][argument.origin.name][1], stack)

    return [
        ("InteractiveParser, copy and feed, a terminal", micro(interactive, each=len(word))),
        ("stepping its table on linked stacks, a terminal", micro(linked, each=len(word))),
    ]


def lexing() -> list[Row]:
    """Sizes of byte automata."""
    bounded = JsonString(maximum=65_536).dfa()
    state, text = bounded.start, b'"' + b"a" * 100
    for byte in text:
        state = bounded.row(state)[byte]
    stops = TextUntil(letter_stops(QWEN3_CODER.elements), QWEN3_CODER.suffix_overlap).text()
    numbers = count()
    email = r"[a-z0-9._]+@[a-z0-9.]+\.[a-z]{2,}"
    return [
        ("states of a JSON string", str(states(JsonString().dfa()))),
        ("states of one of up to 65,536 characters, after 100 of them", str(state + 1)),
        ("states of a raw value of qwen3_coder", str(states(stops))),
        ("states of " + email, str(states(compile_regex(email, anchored=True)))),
        ("compiling one like it, to its first row", micro(lambda: compile_anew(email, next(numbers)))),
    ]


def states(dfa: Any) -> int:
    """The states that can be reached."""
    found = [dfa.start]
    known = {dfa.start}
    for state in found:
        new = {following for following in dfa.row(state) if following >= 0} - known
        known |= new
        found += new
    return len(found)


def compile_anew(pattern: str, number: int) -> None:
    """Compile a pattern that was never seen."""
    dfa = compile_regex(f"{pattern}{number}", anchored=True)
    dfa.row(dfa.start)


def attributes() -> list[Row]:
    """LALR states of tools by the number of their parameters: any order, all of them required."""
    rows = []
    for size in (2, 10, 40, 160):
        properties = {f"p{i}": {"type": "string"} for i in range(size)}
        tool = Tool(
            "f", parameters={"type": "object", "properties": properties, "required": list(properties)}
        )
        for name in ("hermes", "qwen3_coder"):
            rows.append((f"LALR states of {size} parameters, {name}", str(len(tables_of(name, tool)))))
    return rows


def tables_of(name: str, tool: Tool) -> Sequence[object]:
    """The LALR states of a tool's arguments."""
    arguments = wire_format(name).arguments(tool, read_parameters(tool.parameters, tool.name))
    return Symbols(arguments).tables.states


def masks(vocabulary: Vocabulary, tokenizer: Tokenizer) -> list[Row]:
    """The trie, what is kept on disk, and a turn read for the first time and again."""
    rows: list[Row] = []
    trie = Trie(vocabulary.tokens, vocabulary.width)
    rows += [
        ("tokens, trie nodes", f"{len(trie.ids):,}, {len(trie.byte):,}"),
        ("bytes of a mask", f"{trie.words * 4:,}"),
    ]
    tokens = [*tokenizer.encode(CALL, add_special_tokens=False).ids, min(vocabulary.eos_ids)]
    with tempfile.TemporaryDirectory() as folder:
        engine, without = started(vocabulary, Path(folder))
        (file,) = Path(folder).rglob("*.npz")
        rows.append(("engine made and warmed up, without a file", f"{without:.2f} s"))
        restarted = []
        turns: dict[str, list[list[float]]] = {"first": [], "again": []}
        for _ in range(5):
            engine, took = started(vocabulary, Path(folder))
            restarted.append(took)
            grammar = wire_format("qwen3_coder").grammar([WRITE], CallPolicy(required=True), vocabulary)
            for found in turns.values():
                found.append(read(engine.matcher(grammar), tokens))
        rows.append(("engine made and warmed up, with a file", f"{median(restarted):.2f} s"))
        rows.append(("size of the file", f"{file.stat().st_size / 1e6:.1f} MB"))
    for kind, found in turns.items():
        times = [median(of_mask) for of_mask in zip(*found, strict=True)]
        shown = f"{sum(times) * 1e3:.2f} ms, {median(times) * 1e6:.1f} µs, {max(times) * 1e6:.0f} µs"
        rows.append((f"masks of a turn of {len(tokens)} tokens, {kind}: sum, p50, max", shown))
    automaton = engine.automaton(grammar)
    made = len({id(mask) for mask in automaton.masks._known.values()})
    rows.append(("configurations, distinct masks", f"{len(automaton.transitions.configurations)}, {made}"))
    return rows


def started(vocabulary: Vocabulary, folder: Path) -> tuple[Engine, float]:
    """A warm engine, and the seconds that it took."""
    start = perf_counter()
    engine = Engine(vocabulary, disk_cache=folder)
    warm_up(engine)
    return engine, perf_counter() - start


def read(matcher: Matcher, tokens: Sequence[int]) -> list[float]:
    """Seconds that each mask took."""
    times = []
    for token in tokens:
        start = perf_counter()
        matcher.mask()
        times.append(perf_counter() - start)
        matcher.advance(token)
    assert matcher.finished
    return times


def micro(work: Callable[[], None], *, each: int = 1, repeats: int = 300) -> str:
    """The median time of `work`, of which there is `each` in one."""
    times = []
    for _ in range(repeats):
        start = perf_counter()
        work()
        times.append(perf_counter() - start)
    return f"{median(times) / each * 1e6:.1f} µs"


if __name__ == "__main__":
    main()
