"""What the inspector's page sends and gets."""

from __future__ import annotations

from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

from larksong.api.openai_chat.messages import RequestPart
from larksong.api.openai_chat.schemas import ChatRequest, EventInfo

Mode = Literal["schema", "open", "compat"]
"""schema: by the grammar of the tools, with masks; open: what nobody constrained; compat: tabbyAPI's"""


class Question(RequestPart):
    """A chat request, of which tools, tool_choice and tool_format count, and how its answer is read.

    `in_reasoning`: the prompt ended inside reasoning. `tokenizer`: a served model, whose tokenizer cuts the
    text, or "single bytes"; the first model where it is not said.
    """

    request: ChatRequest
    mode: Mode = "schema"
    in_reasoning: bool = False
    tokenizer: str | None = None


class TextQuestion(Question):
    """The text of a model's turn beside it."""

    text: str


class About(TypedDict):
    """What the server has to offer. `reasoning`: by format, how a prompt ends that has opened reasoning."""

    model: str
    format: str
    formats: list[str]
    reasoning: dict[str, str | None]
    modes: list[str]
    tokenizers: list[str]
    tokens: int
    example: dict[str, Any]


class GrammarText(TypedDict):
    """The grammar as Lark text."""

    lark: str


class TerminalShape(TypedDict):
    """A terminal that is being read: name, role, definition."""

    name: str
    role: str
    text: str


class StepShape(TypedDict):
    """One token, the place where it stood and what it made certain.

    Where masks are known: `allowed`, how many tokens might come; `few`, their texts where they are few;
    `live`, the terminals by their place in the page's list; `stack`, how deep the parser's stack is. A step
    with `token` null is the place after the last token.
    """

    token: int | None
    text: str
    special: bool
    refused: bool
    events: list[EventInfo]
    deltas: list[dict[str, Any]]
    allowed: NotRequired[int]
    few: NotRequired[list[str]]
    live: NotRequired[list[int]]
    stack: NotRequired[int]


class Tail(TypedDict):
    """The end of a text and how long all of it is, in characters."""

    text: str
    length: int


class CallTail(Tail):
    """The arguments of a call."""

    name: str


class Assembled(TypedDict):
    """What a client has put together."""

    content: Tail
    reasoning: Tail
    calls: list[CallTail]


class Page(TypedDict):
    """Some steps of a reading. `count`: the steps that there are, the place after the last one included.
    `tokenizer`: the model whose tokens they are, or "single bytes"; `tokens`: the width of the vocabulary.

    `unread`: tokens after a refused one. `growing`: a live turn that goes on.
    """

    session: str
    start: int
    count: int
    tokenizer: str
    tokens: int
    unread: int
    complete: bool
    growing: bool
    before: Assembled
    terminals: list[TerminalShape]
    steps: list[StepShape]
    refusal: NotRequired[dict[str, Any]]


class LiveShape(TypedDict):
    """A turn that runs, or ran a short while ago."""

    id: str
    began: float
    model: str
    format: str
    tools: list[str]
    tokens: int
    ended: str | None
