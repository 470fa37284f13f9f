"""A model whose only layer reads the prefix back out of the real paged cache.

What it says next is a function of that whole prefix. So a wrong page, a rewind too short, a requeue that loses
a token or a draft that is taken without being checked changes what is written.
"""

from __future__ import annotations

import threading
import time
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from exllamav3.cache.cache import CacheLayer
from exllamav3.constants import PAGE_SIZE
from exllamav3.model.model import Model
from exllamav3.modules.module import Module

Policy = Callable[[np.ndarray], np.ndarray]
"""The ids of a prefix → one row of logits, float32."""

PADDED_TO = 128
"""Output layers are filled up with zeros to a multiple of this, and so are the logits."""


class TokenLayer(CacheLayer):  # type: ignore[misc]
    """A cache layer that keeps a token's id where others keep its keys and values."""

    def __init__(
        self, config: Any, attention: Any, cache_id: int, max_num_tokens: int, **kwargs: Any
    ) -> None:
        super().__init__(config, attention, cache_id, max_num_tokens)
        self.ids: torch.Tensor | None = None

    def alloc(self, device: Any) -> None:
        # -1 is no token: a slot that was never written is noticed.
        self.ids = torch.full((self.max_num_tokens // PAGE_SIZE, PAGE_SIZE), -1, dtype=torch.long)

    def free(self) -> None:
        self.ids = None

    def copy_page(self, source: Any, from_page: int, to_page: int, num_tokens: int) -> None:
        self.ids[to_page, :num_tokens] = source.ids[from_page, :num_tokens]

    def get_tensors(self) -> list[torch.Tensor]:
        return [self.ids]

    def storage_size(self) -> int:
        return self.max_num_tokens * 8

    def overhead_size(self) -> int:
        return 0

    def get_kv(self, *args: Any) -> Any:
        raise NotImplementedError

    update_kv = update_kv_direct = tp_export = get_kv


class PrefixAttention(Module):  # type: ignore[misc]
    """Writes the ids into the cache, reads each row's prefix back, and asks the policy."""

    def __init__(self, config: Any, model: PrefixModel) -> None:
        super().__init__(config, "attention", None)
        self.layer_idx = 0
        self.num_kv_heads = self.head_dim = 1
        self.cache_layers: list[TokenLayer] = []
        self.recurrent_layers: list[Any] = []
        self.caps = {"kv_cache": True, "logits_output": True}
        self.model = model

    def cache_layer_type(self, wanted: Any, kwargs: Any) -> tuple[type[TokenLayer], dict[str, Any]]:
        return TokenLayer, {}

    def load(self, device: Any, **kwargs: Any) -> None:
        self.device = torch.device(device)
        for layer in self.cache_layers:
            layer.alloc(device)

    def optimizer_targets(self) -> Any:
        raise NotImplementedError

    def forward(self, x: torch.Tensor, params: dict[str, Any], out_dtype: Any = None) -> torch.Tensor | None:
        ids = params["cache"].layers[0, 0].ids
        rows, size = x.shape
        self.model.count("prefill" if params.get("prefill") else "forward", rows)
        if self.model.step_seconds and not params.get("prefill"):
            time.sleep(self.model.step_seconds)  # releases the GIL, as waiting for a GPU does
        blocks = params["block_table"][:rows]
        lengths = params["cache_seqlens"][:rows].tolist()
        for row, start in enumerate(lengths):
            places = torch.arange(start, start + size)
            ids[blocks[row, places // PAGE_SIZE].long(), places % PAGE_SIZE] = x[row]
        if params.get("prefill"):
            return None
        logits = np.zeros((rows, size, -(-self.model.width // PADDED_TO) * PADDED_TO), dtype=np.float32)
        for row, start in enumerate(lengths):
            pages = blocks[row, : (start + size - 1) // PAGE_SIZE + 1].long()
            prefix = ids[pages].view(-1)[: start + size].numpy()
            for at in range(size):
                seen = prefix[: start + at + 1]
                if (seen < 0).any():
                    raise AssertionError("the model was made to read a place that was never written")
                logits[row, at, : self.model.width] = self.model.policy(seen)
        return torch.from_numpy(logits)


class PrefixModel(Model):  # type: ignore[misc]
    """The model. `policy` and `step_seconds` (what one forward takes) may be set at any time."""

    def __init__(self, config: Any, **kwargs: Any) -> None:
        super().__init__(config, **kwargs)
        self.width = config.vocab_size
        self.policy: Policy = hashed(self.width)
        self.step_seconds = 0.0
        self.forwards = 0
        """Forward passes that gave logits."""
        self.begun: list[tuple[float, float, int]] = []
        """When they began, in seconds, after which processor time of the thread, and of how many jobs."""
        self.threads: set[str] = set()
        self.first_block_idx = self.last_kv_module_idx = self.logit_layer_idx = 0
        self.modules = [PrefixAttention(config, self)]

    def prepare_inputs(self, input_ids: torch.Tensor, params: dict[str, Any]) -> torch.Tensor:
        return input_ids

    def count(self, kind: str, rows: int) -> None:
        self.threads.add(threading.current_thread().name)
        if kind == "forward":
            self.forwards += 1
            self.begun.append((time.perf_counter(), time.thread_time(), rows))


def hashed(width: int, *, seed: int = 0, scale: float = 2.0) -> Policy:
    """Says something else after every prefix."""

    def policy(prefix: np.ndarray) -> np.ndarray:
        key = zlib.crc32(np.ascontiguousarray(prefix, dtype=np.int64).tobytes(), seed)
        noise = np.random.Generator(np.random.Philox(key=key)).standard_normal(width, dtype=np.float32)
        return noise * np.float32(scale)

    return policy


def silent(width: int) -> Policy:
    """Likes nothing more than anything else; cheap for large vocabularies."""
    return lambda prefix: np.zeros(width, dtype=np.float32)


def scripted(
    width: int, scripts: dict[tuple[int, ...], list[int]], *, bonus: float = 60.0, other: Policy | None = None
) -> Policy:
    """Prompts (token ids) → what is written after them, as long as that was followed; `other` after that."""
    other = other or hashed(width)
    longest_first = sorted(scripts, key=len, reverse=True)

    def policy(prefix: np.ndarray) -> np.ndarray:
        logits = other(prefix)
        ids = tuple(prefix.tolist())
        for prompt in longest_first:
            written = ids[len(prompt) :]
            script = scripts[prompt]
            if ids[: len(prompt)] == prompt and len(written) < len(script):
                if list(written) == script[: len(written)]:
                    logits[script[len(written)]] += bonus
                break
        return logits

    return policy
