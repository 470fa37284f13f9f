"""The extension's sampling kernels in torch and numpy.

Same distributions and the same order of steps; the noise of a seed is another than CUDA's.
"""

from __future__ import annotations

import numpy as np
import torch

EXPORTS = (
    "FUSED_SAMPLER_HIST_STRIDE",
    "FUSED_SAMPLER_MAX_BLOCKS",
    "apply_logit_bitmask",
    "apply_pres_freq_pens",
    "apply_rep_pens",
    "dry_penalty",
    "fused_sampler",
    "gumbel_noise_f16",
    "gumbel_noise_f32",
    "gumbel_noise_log",
)

FUSED_SAMPLER_MAX_BLOCKS = 1
FUSED_SAMPLER_HIST_STRIDE = 1

_NEVER = -float("inf")
_GREEDY, _SAMPLE, _SAMPLE_MINP, _SAMPLE_FILTERS = range(4)
_TOP_K, _TOP_P, _MIN_P = 1, 2, 4


def _gumbel(seed: int, shape: torch.Size) -> torch.Tensor:
    uniform = np.random.Generator(np.random.Philox(key=seed)).random(tuple(shape), dtype=np.float32)
    return -torch.log(-torch.log(torch.from_numpy(uniform).clamp(1e-20, 1 - 1e-7)))


def gumbel_noise_f16(source: torch.Tensor, target: torch.Tensor, seed: int) -> None:
    """`source` with Gumbel noise: its largest entry is a draw from the softmax."""
    target.copy_(source.float() + _gumbel(seed, source.shape))


def gumbel_noise_f32(source: torch.Tensor, target: torch.Tensor, seed: int) -> None:
    """See gumbel_noise_f16."""
    gumbel_noise_f16(source, target, seed)


def gumbel_noise_log(source: torch.Tensor, target: torch.Tensor, seed: int) -> None:
    """Like gumbel_noise_f16, of probabilities."""
    target.copy_(torch.log(source.float()) + _gumbel(seed, source.shape))


def _allowed(bits: torch.Tensor, width: int) -> torch.Tensor:
    unpacked = np.unpackbits(bits.contiguous().numpy().view(np.uint8), axis=-1, bitorder="little")
    found = torch.zeros((bits.shape[0], width), dtype=torch.bool)
    size = min(width, unpacked.shape[-1])
    found[:, :size] = torch.from_numpy(unpacked[:, :size]).bool()
    return found


def apply_logit_bitmask(source: torch.Tensor, target: torch.Tensor, bits: torch.Tensor) -> None:
    """`source` with minus infinity where the packed mask has no bit."""
    target.copy_(source.masked_fill(~_allowed(bits, source.shape[-1]), _NEVER))


def fused_sampler(
    logits: torch.Tensor,
    dense: torch.Tensor | None,
    bits: torch.Tensor | None,
    sample: torch.Tensor,
    workspace: torch.Tensor,
    width: int,
    inverse_temperature: float,
    minp_log: float,
    seed: int,
    mode: int,
    filters: int,
    top_k: int,
    top_p: float,
    inverse_filter_temperature: float,
    histogram: torch.Tensor | None,
) -> None:
    """Mask, truncate, scale and draw in one go. With nothing allowed it gives token 0, as the kernel does."""
    row = logits[:, :width].float()
    if dense is not None:
        row = row + dense[:, :width].float()
    if bits is not None:
        row = row.masked_fill(~_allowed(bits, width), _NEVER)
    if mode == _SAMPLE_FILTERS:
        row = _truncated(row, filters, top_k, top_p, minp_log, inverse_filter_temperature)
    elif mode == _SAMPLE_MINP:
        row = row.masked_fill(row < row.max(-1, keepdim=True).values + minp_log, _NEVER)
    if mode != _GREEDY:
        row = row * inverse_temperature + _gumbel(seed, row.shape)
    chosen = row.argmax(-1)
    empty = row.max(-1).values == _NEVER
    sample.view(-1).copy_(torch.where(empty, torch.zeros_like(chosen), chosen))


def _truncated(
    row: torch.Tensor, filters: int, top_k: int, top_p: float, minp_log: float, scale: float
) -> torch.Tensor:
    if filters & _MIN_P:
        row = row.masked_fill(row < row.max(-1, keepdim=True).values + minp_log, _NEVER)
    if filters & _TOP_K:
        least = row.topk(min(top_k, row.shape[-1]), -1).values[:, -1:]
        row = row.masked_fill(row < least, _NEVER)
    if filters & _TOP_P:
        ordered, places = torch.softmax(row * scale, -1).sort(-1, descending=True)
        drop = ordered.cumsum(-1) - ordered >= top_p
        row = row.masked_fill(torch.zeros_like(drop).scatter(-1, places, drop), _NEVER)
    return row


def _weights(past: torch.Tensor, sustain: int, decay: int) -> torch.Tensor:
    """How much each past token counts: 1 for the last `sustain`, then less and less."""
    distance = torch.arange(past.shape[-1], 0, -1, dtype=torch.float)
    if decay <= 0:
        return (distance <= sustain).float()
    return (1 - (distance - sustain) / decay).clamp(0, 1)


def apply_rep_pens(
    source: torch.Tensor, target: torch.Tensor, past: torch.Tensor, penalty: float, sustain: int, decay: int
) -> None:
    """Repetition penalty: logits of past tokens are divided by it, negative ones multiplied."""
    row = source[0].float()
    share = torch.zeros_like(row).scatter_reduce(0, past[0], _weights(past, sustain, decay), "amax")
    punished = torch.where(row > 0, row / penalty, row * penalty)
    # What is masked stays so: minus infinity times 0 would be no number.
    target[0] = torch.where((share > 0) & (row > _NEVER), row * (1 - share) + punished * share, row)


def apply_pres_freq_pens(
    source: torch.Tensor,
    target: torch.Tensor,
    past: torch.Tensor,
    presence: float,
    frequency: float,
    sustain: int,
    decay: int,
) -> None:
    """OpenAI's penalties: one for having come at all, one for each time."""
    row = source[0].float()
    weights = _weights(past, sustain, decay)
    counted = torch.zeros_like(row).scatter_add(0, past[0], weights)
    seen = torch.zeros_like(row).scatter_reduce(0, past[0], weights, "amax")
    target[0] = row - counted * frequency - seen * presence


def dry_penalty(
    source: torch.Tensor,
    target: torch.Tensor,
    past: torch.Tensor,
    breakers: torch.Tensor | None,
    workspace: torch.Tensor,
    counters: torch.Tensor,
    multiplier: float,
    base: float,
    allowed_length: int,
    window: int,
    max_exponent: int,
    match_cap: int,
) -> None:
    """DRY: what would continue a repeated sequence is punished, the more the longer it is."""
    target.copy_(source.float())
    recent: list[int] = past[0].tolist()[::-1]
    if window > 0:
        recent = recent[:window]
    if len(recent) <= allowed_length:
        return
    stops = [breakers is not None and bool(breakers[token]) for token in recent]
    reach = stops.index(True) if True in stops else len(recent)
    if reach < allowed_length:
        return
    cap = min(reach, allowed_length + max_exponent if max_exponent > 0 else match_cap)
    longest: dict[int, int] = {}
    for shift in range(1, len(recent)):
        size, limit = 0, min(cap, len(recent) - shift)
        while size < limit and recent[size] == recent[size + shift]:
            size += 1
        if size >= allowed_length:
            follower = recent[shift - 1]
            longest[follower] = max(longest.get(follower, 0), size)
    for token, size in longest.items():
        if breakers is None or not breakers[token]:
            exponent = size - allowed_length
            exponent = min(exponent, max_exponent) if max_exponent > 0 else exponent
            target[0, token] -= multiplier * base**exponent
