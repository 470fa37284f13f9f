"""The fields that say how tokens are drawn, under the names of OpenAI, vLLM and tabbyAPI."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, AliasChoices, Field
from pydantic_core import PydanticCustomError

from larksong.api.errors import ApiError
from larksong.api.openai_chat.messages import DictOf, ListOf, RequestPart
from larksong.engine.backends.base import Backend, Sampling


def unless(*accepted: Any) -> AfterValidator:
    """Refuses every value but None and those that change nothing."""

    def check(value: Any) -> Any:
        if value is not None and value not in accepted:
            raise PydanticCustomError(
                "unsupported_parameter",
                "this server does not support it, and ignoring it would change the answer",
            )
        return value

    return AfterValidator(check)


def _named(*names: str) -> Any:
    return Field(default=None, validation_alias=AliasChoices(*names))


_Penalty = Annotated[float, Field(ge=-2, le=2)]


class SamplerFields(RequestPart):
    """Honoured: those of the first part. The others are refused where they would do something."""

    temperature: Annotated[float, Field(ge=0)] | None = _named("temperature", "temp")
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    top_k: Annotated[int, Field(ge=-1)] | None = None
    min_p: Annotated[float, Field(ge=0, le=1)] | None = None
    seed: Annotated[int, Field(ge=-(2**63), lt=2**63)] | None = None
    frequency_penalty: _Penalty | None = None
    presence_penalty: _Penalty | None = None
    repetition_penalty: Annotated[float, Field(gt=0, le=10)] | None = _named("repetition_penalty", "rep_pen")
    penalty_range: Annotated[int, Field(ge=-1)] | None = _named(
        "penalty_range", "repetition_penalty_range", "rep_pen_range", "repetition_range"
    )
    logit_bias: DictOf[Annotated[float, Field(ge=-100, le=100)]] | None = None
    banned_tokens: ListOf[int] | None = _named("banned_tokens", "custom_token_bans")
    min_tokens: Annotated[int, Field(ge=0)] | None = _named("min_tokens", "min_length")
    dry_multiplier: Annotated[float, Field(ge=0)] | None = None
    dry_base: Annotated[float, Field(gt=0, le=10)] | None = None
    dry_allowed_length: Annotated[int, Field(ge=1)] | None = None
    dry_range: Annotated[int, Field(ge=0)] | None = _named("dry_range", "dry_penalty_last_n")
    dry_sequence_breakers: ListOf[str] | None = None
    banned_strings: str | ListOf[str] | None = None
    stop: str | ListOf[str] | None = _named("stop", "stop_sequence")

    top_a: Annotated[float | None, unless(0)] = None
    tfs: Annotated[float | None, unless(1)] = None
    typical: Annotated[float | None, unless(1)] = _named("typical", "typical_p")
    skew: Annotated[float | None, unless(0)] = None
    xtc_probability: Annotated[float | None, unless(0)] = None
    mirostat_mode: Annotated[int | None, unless(0)] = None
    smoothing_factor: Annotated[float | None, unless(0)] = None
    max_temp: Annotated[float | None, unless(1)] = None
    min_temp: Annotated[float | None, unless(1)] = None
    temperature_last: Annotated[bool | None, unless(False)] = None
    cfg_scale: Annotated[float | None, unless(1)] = None
    negative_prompt: Annotated[str | None, unless("")] = None
    token_healing: Annotated[bool | None, unless(False)] = None
    ignore_eos: Annotated[bool | None, unless(False)] = _named("ignore_eos", "ban_eos_token")
    stop_token_ids: Annotated[ListOf[int] | None, unless([])] = None
    bad_words: Annotated[ListOf[str] | None, unless([])] = None
    logits_processors: Annotated[list[Any] | None, unless([])] = None
    use_beam_search: Annotated[bool | None, unless(False)] = None
    length_penalty: Annotated[float | None, unless(1)] = None
    best_of: Annotated[int | None, unless(1)] = None
    prompt_logprobs: Annotated[int | None, unless()] = None

    def stops(self) -> tuple[str, ...]:
        """The texts that end the answer. Raises ApiError."""
        listed = [self.stop] if isinstance(self.stop, str) else self.stop or []
        if len(listed) > _MOST_STOPS:
            raise ApiError(f"Invalid 'stop': at most {_MOST_STOPS} texts.", param="stop")
        if not all(listed):
            raise ApiError("Invalid 'stop': a text is empty; leave it out.", param="stop")
        return tuple(listed)


_MOST_STOPS = 32


def sampling(fields: SamplerFields, logprobs: int | None = None) -> Sampling:
    """How the tokens of a request are drawn. Raises ApiError."""
    bias: dict[int, float] = {}
    for text, value in (fields.logit_bias or {}).items():
        if not text.isdecimal() or not text.isascii() or len(text) > _MOST_DIGITS:
            raise ApiError(f"Invalid 'logit_bias': '{text}' is not a token id.", param="logit_bias")
        bias[int(text)] = float("-inf") if value == -100 else value
    listed = fields.banned_strings or ()
    banned = [listed] if isinstance(listed, str) else listed
    bias |= dict.fromkeys(fields.banned_tokens or (), float("-inf"))
    ranges = fields.penalty_range
    breakers = None if fields.dry_sequence_breakers is None else tuple(fields.dry_sequence_breakers)

    def given(value: float | None, default: float) -> float:
        return default if value is None else value

    return Sampling(
        temperature=given(fields.temperature, 1.0),
        top_p=given(fields.top_p, 1.0),
        top_k=max(fields.top_k or 0, 0),  # other servers write "off" as -1
        min_p=fields.min_p or 0.0,
        seed=fields.seed,
        frequency_penalty=fields.frequency_penalty or 0.0,
        presence_penalty=fields.presence_penalty or 0.0,
        repetition_penalty=given(fields.repetition_penalty, 1.0),
        penalty_range=None if ranges is None or ranges < 0 else ranges,
        logit_bias=tuple(bias.items()),
        min_tokens=fields.min_tokens or 0,
        dry_multiplier=fields.dry_multiplier or 0.0,
        dry_base=given(fields.dry_base, 1.75),
        dry_allowed_length=fields.dry_allowed_length or 2,
        dry_range=fields.dry_range or 0,
        banned_strings=tuple(text for text in banned if text),
        dry_sequence_breakers=breakers,
        logprobs=logprobs,
    )


_MOST_DIGITS = 9


def unsupported(field: str) -> ApiError:
    """The refusal of a field that the model's backend does not heed."""
    message = f"The model's backend does not support '{field}', and ignoring it would change the answer."
    return ApiError(message, param=field, code="unsupported_parameter")


def on_model(drawn: Sampling, fields: SamplerFields, backend: Backend) -> Sampling:
    """The same, checked: a model has the tokens. Raises ApiError for ids that it does not have."""
    if drawn.banned_strings and "banned_strings" in backend.unsupported:
        raise unsupported("banned_strings")
    width = backend.vocabulary.width
    for token, _ in drawn.logit_bias:
        if not 0 <= token < width:
            param = "banned_tokens" if token in (fields.banned_tokens or ()) else "logit_bias"
            raise ApiError(
                f"Invalid '{param}': {token} is not a token id from 0 to {width - 1}.", param=param
            )
    return drawn
