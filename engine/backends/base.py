"""What every backend is: prompt, matcher and sampler settings in, accepted tokens and parse events out."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

from tokenizers import Tokenizer

from larksong.engine.events import ParseEvent
from larksong.engine.vocabulary import Vocabulary

if TYPE_CHECKING:
    from larksong.engine.matcher import Matcher


@dataclass(frozen=True, slots=True)
class Sampling:
    """How a token is drawn from the logits.

    Penalties and biases come first, then the mask, then the filters in the order in which they stand here.
    A token that is penalised or banned is still taken where the mask allows no other. Raises ValueError for a
    setting outside its range.
    """

    temperature: float = 1.0
    """Divides the logits; 0 takes the likeliest token, whatever the other settings."""
    top_k: int = 0
    """Keep the k likeliest tokens; 0 keeps all."""
    top_p: float = 1.0
    """Keep the likeliest tokens up to this probability mass, in (0, 1]; 1 keeps all."""
    min_p: float = 0.0
    """Keep tokens of at least this share of the likeliest one's probability, in [0, 1]."""
    seed: int | None = None
    """The same seed, prompt and settings give the same tokens; None draws a seed."""
    frequency_penalty: float = 0.0
    """Taken from a token's logit for each time that it came; OpenAI's. transformers counts the answer alone,
    exllamav3 prompt and answer."""
    presence_penalty: float = 0.0
    """Taken from a token's logit once it came; OpenAI's."""
    repetition_penalty: float = 1.0
    """Divides the logits of tokens that came (negative ones are multiplied); 1 changes nothing."""
    penalty_range: int | None = None
    """How many of the last tokens the three penalties look at; None looks at all."""
    logit_bias: tuple[tuple[int, float], ...] = ()
    """(token id, what is added to its logit; -inf bans it). A mask goes before it: no bias lets in a token
    that it refuses."""
    min_tokens: int = 0
    """No end of the turn before so many tokens, where the mask leaves the choice."""
    logprobs: int | None = None
    """How many likely tokens a step reports beside its own; None reports none, not its own either."""
    banned_strings: tuple[str, ...] = ()
    """Texts, whatever their case, that are taken back and written otherwise when they come."""
    dry_multiplier: float = 0.0
    """The scale of DRY's penalty on going on with a sequence that came before; 0 is off."""
    dry_base: float = 1.75
    """What DRY's penalty grows by with each token of such a sequence."""
    dry_allowed_length: int = 2
    """The longest sequence that may come again without a penalty, in tokens."""
    dry_range: int = 0
    """How many tokens back DRY looks; 0 is all."""
    dry_sequence_breakers: tuple[str, ...] | None = None
    """Texts that no sequence of DRY's goes over; None is the backend's own list."""

    def __post_init__(self) -> None:
        if not 0 <= self.temperature < float("inf"):
            raise ValueError(f"temperature must be 0 or more, not {self.temperature}")
        if self.top_k < 0:
            raise ValueError(f"top_k must be 0 or more, not {self.top_k}")
        if not 0 < self.top_p <= 1:
            raise ValueError(f"top_p must be above 0 and at most 1, not {self.top_p}")
        if not 0 <= self.min_p <= 1:
            raise ValueError(f"min_p must be from 0 to 1, not {self.min_p}")
        if self.repetition_penalty <= 0:
            raise ValueError(f"repetition_penalty must be above 0, not {self.repetition_penalty}")
        if self.logprobs is not None and self.logprobs < 0:
            raise ValueError(f"logprobs must be 0 or more, not {self.logprobs}")
        for name in ("dry_multiplier", "dry_allowed_length", "dry_range"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must be 0 or more, not {getattr(self, name)}")


@dataclass(frozen=True, slots=True)
class ReasoningBudget:
    """Most tokens of reasoning; after them only the marker that ends it is allowed.

    `close`: that marker's tokens. `begun`: the prompt ends inside reasoning.
    """

    tokens: int
    close: tuple[int, ...]
    begun: bool


@dataclass(frozen=True, slots=True)
class Generation:
    """One sequence to be generated. The backend owns `matcher` from then on.

    Raises ValueError for a `max_tokens` below 1.
    """

    prompt: tuple[int, ...]
    matcher: Matcher | None
    sampling: Sampling
    max_tokens: int
    """Most tokens to write; a backend writes fewer where its context ends."""
    forced_tokens: bool = True
    """Whether tokens that must come are taken without asking the model, where the backend can feed many at
    once (see `Matcher.forced`)."""
    finish_within_budget: bool = False
    """Whether the masks lead to the shortest valid end when the tokens left come near it (see
    `larksong.engine.budget`)."""
    reasoning_budget: ReasoningBudget | None = None

    def __post_init__(self) -> None:
        if self.max_tokens < 1:
            raise ValueError(f"max_tokens must be 1 or more, not {self.max_tokens}")


@dataclass(frozen=True, slots=True)
class Logprobs:
    """How likely tokens were to the model itself: before mask, penalties and temperature.

    So a masked token can be among `top`, and the likelihood of a token that had to come may be tiny.
    """

    chosen: float
    """Natural logarithm of the probability of the step's token."""
    top: tuple[tuple[int, float], ...]
    """The likeliest tokens, likeliest first: (token id, natural logarithm of its probability)."""


@dataclass(frozen=True, slots=True)
class Probabilities:
    """What the model itself gave a step's tokens, before penalties, mask and filters.

    `kept`: the probability, from 0 to 1, that the mask left.
    """

    kept: float | None = None
    logprobs: Logprobs | None = None


UNMEASURED = Probabilities()
"""Of a step that the model was not asked for, or whose probabilities nobody knows."""


class Step(NamedTuple):
    """One token of the answer, sampled or forced, and what it revealed."""

    token: int
    text: bytes
    """The token's bytes; b"" for a marker. May end inside a UTF-8 sequence."""
    events: tuple[ParseEvent, ...]
    allowed: int
    """How many tokens the mask allowed; the vocabulary's width where nothing was masked."""
    elapsed: float
    """Seconds since the generation began."""
    forced: bool = False
    """The token had to come: the model was not asked."""
    logprobs: Logprobs | None = None
    """With `Sampling.logprobs`, where the backend knows them."""
    kept: float | None = None
    """The probability, from 0 to 1, that the mask left; None where nobody knows."""
    mask_seconds: float = 0.0
    """What finding the mask took."""
    cached_tokens: int = 0
    """As in `Finish`, for those who do not read that far; 0 where it is not known yet."""


@dataclass(frozen=True, slots=True)
class Finish:
    """The end of a sequence: an end-of-sequence token ("stop"), the token limit, or an error."""

    reason: Literal["stop", "length", "error"]
    events: tuple[ParseEvent, ...]
    """What the end of the text revealed."""
    error: str | None = None
    finished_calls: tuple[int, ...] | None = None
    """With `Generation.finish_within_budget`: the calls, counted from 0, that were led to their end. The
    reason is "length" if there are any, or if nothing else than the end fitted any more."""
    cached_tokens: int = 0
    """Tokens of the prompt that the model had read before, for another request."""


class Backend(Protocol):
    """A model, or something that stands for one. Sequences run at the same time and do not wait in line."""

    @property
    def name(self) -> str:
        """The model's name, as clients see it."""

    @property
    def vocabulary(self) -> Vocabulary: ...

    @property
    def tokenizer(self) -> Tokenizer: ...

    @property
    def context_length(self) -> int:
        """Most tokens of prompt and answer together."""

    @property
    def chat_template(self) -> str | None:
        """The model's Jinja chat template."""

    @property
    def bos_token(self) -> str:
        """Text of the token that begins a prompt; "" where there is none."""

    @property
    def eos_token(self) -> str:
        """Text of the token that ends a turn; "" where there is none."""

    @property
    def unsupported(self) -> frozenset[str]:
        """The fields of Sampling and Generation that this backend does not heed."""

    def generate(self, generation: Generation) -> AsyncGenerator[Step | Finish, None]:
        """Run one sequence: its steps, then one Finish. Without a matcher a token's bytes are Content.

        Closing the iterator stops the sequence. A prompt that does not fit raises PromptError, an answer that
        cannot be finished within its budget BudgetTooSmall at the call, before anything runs; all later
        failures are a Finish("error").
        """

    def close(self) -> None:
        """End all sequences and free the model. The backend cannot be used afterwards."""
