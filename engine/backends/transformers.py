"""Any causal model of the transformers library, on the CPU or any torch device.

One worker thread owns the model. It goes round all running sequences and gives each one unit of work: a
chunk of its prompt, or one decoding step. So a second request starts at once, and a long prompt holds up the
others by no more than a chunk. Each sequence has its own key-value cache, sampler and matcher; only the
thread touches them.

What must come (`Matcher.forced`) is not sampled. What is likely to come (`Matcher.likely`) is read along with
the last token and sampled all the same, as in speculative decoding (Leviathan et al. 2023, arXiv 2211.17192):
where the sample is the draft, its pass is saved; the text is the same.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Self

# Before torch is loaded: OpenMP threads that spin while they wait take the cores from everything else. With
# other work on both of two cores, a token of SmolLM2 takes 0.14 to 0.27 s so, and 0.4 to 1.8 s with spinning.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import torch
from safetensors import SafetensorError
from transformers import AutoModelForCausalLM, DynamicCache, PreTrainedModel
from transformers.utils.logging import disable_progress_bar

from larksong.engine.backends.base import Finish, Generation, Step
from larksong.engine.backends.decoding import Decoding
from larksong.engine.backends.errors import NotAModel
from larksong.engine.backends.handover import Handover
from larksong.engine.backends.model_description import DescribedBackend
from larksong.engine.backends.model_folder import ModelFolder
from larksong.engine.backends.model_store import DEFAULT_MODEL, find_model
from larksong.engine.backends.penalties import breaker_ids
from larksong.engine.backends.prefix_cache import PrefixCache, can_be_cut, common
from larksong.engine.backends.sampler import MaskBias, Sampler

_log = logging.getLogger(__name__)

PREFILL_CHUNK = 128  # tokens of a prompt in one unit of work: about a quarter of a second on two cores
_DRAFTS = 16  # tokens that are read in case they come: a pass takes hardly longer with so many
_UNREAD_STEPS = 32  # a sequence pauses when its reader is this far behind


class TransformersBackend(DescribedBackend):
    """A `Backend` (see base.py) over a loaded model. `close()` ends its thread."""

    unsupported = frozenset({"banned_strings"})

    def __init__(self, model: PreTrainedModel, folder: ModelFolder, *, threads: int | None = None) -> None:
        super().__init__(folder)
        self._model = model
        self._bias = MaskBias(folder.vocabulary.width)
        self._prefixes = PrefixCache()
        self._sequences: list[_Sequence] = []
        self._changed = threading.Condition()
        self._closed = False
        self._worker = threading.Thread(
            target=self._work, args=(threads,), name="larksong-model", daemon=True
        )
        self._worker.start()

    @classmethod
    def load(
        cls,
        model: str | Path = DEFAULT_MODEL,
        *,
        device: str | None = None,
        dtype: torch.dtype | None = None,
        threads: int | None = None,
    ) -> Self:
        """Load a model by name or path (see model_store); may take seconds, the first time a download.

        `device`: a torch device, by default a GPU where torch finds one. `dtype`: by default float32 on the
        CPU, whose prefill is three times as fast so, and the model's own elsewhere. `threads`: torch's
        threads for the model, by default as many as torch chooses.

        Raises ModelNotFound or NotAModel.
        """
        path = find_model(model)
        folder = ModelFolder.open(path)
        chosen = torch.device(device) if device else _default_device()
        wanted: torch.dtype | str = dtype or (torch.float32 if chosen.type == "cpu" else "auto")
        # transformers' own progress bar would write into the caller's terminal.
        disable_progress_bar()  # type: ignore[no-untyped-call]
        try:
            loaded = AutoModelForCausalLM.from_pretrained(
                path, dtype=wanted, device_map=chosen, local_files_only=True
            )
        except (ValueError, OSError, KeyError, RuntimeError, SafetensorError) as error:
            raise NotAModel(path, f"transformers cannot load it ({error})") from error
        return cls(loaded, folder, threads=threads)

    def generate(self, generation: Generation) -> AsyncGenerator[Step | Finish, None]:
        """See Backend.generate."""
        decoding = Decoding(generation, self.vocabulary, self.context_length)
        return self._run(decoding, generation)

    async def _run(self, decoding: Decoding, generation: Generation) -> AsyncGenerator[Step | Finish, None]:
        handover = Handover[Step | Finish](_UNREAD_STEPS, self._notify)
        cache = DynamicCache(config=self._model.config)
        sampler = Sampler(
            generation.sampling,
            generation.prompt,
            self.vocabulary.eos_ids,
            breaker_ids(generation.sampling, self.tokenizer),
        )
        sequence = _Sequence(decoding, list(generation.prompt), sampler, cache, handover)
        if not self._start(sequence):
            yield decoding.end("error", "the backend is closed")
            return
        try:
            while True:
                item = await handover.get()
                yield item
                if isinstance(item, Finish):
                    return
        finally:
            sequence.over = True
            self._notify()

    def close(self) -> None:
        """See Backend.close."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._worker.join()

    def _start(self, sequence: _Sequence) -> bool:
        with self._changed:
            if not self._closed:
                self._sequences.append(sequence)
                self._changed.notify()
            return not self._closed

    def _notify(self) -> None:
        with self._changed:
            self._changed.notify()

    def _work(self, threads: int | None) -> None:
        if threads is not None:
            torch.set_num_threads(threads)  # counts for the thread that calls it
        with torch.inference_mode():
            while not self._closed:
                self._round()
        for sequence in self._sequences:
            if not sequence.over:
                sequence.handover.put(sequence.decoding.end("error", "the backend was closed"))
        self._sequences.clear()

    def _round(self) -> None:
        """Wait until there is work, then give each sequence one unit."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._due())
            due = self._due()
        for sequence in due:
            if not (sequence.over or self._closed):
                self._advance(sequence)

    def _due(self) -> list[_Sequence]:
        """The sequences that can go on; of the ended ones only what the model has read is kept."""
        for sequence in self._sequences:
            if sequence.over and not sequence.failed:
                self._prefixes.keep(sequence.known, sequence.cache)
        self._sequences = [sequence for sequence in self._sequences if not sequence.over]
        return [sequence for sequence in self._sequences if not sequence.handover.full]

    def _advance(self, sequence: _Sequence) -> None:
        """One unit of work. Whatever fails ends this sequence alone."""
        try:
            items = self._step(sequence)
        except Exception as error:
            _log.exception("a sequence failed")
            sequence.failed = True
            items = (Finish("error", (), f"{type(error).__name__}: {error}"),)
        for item in items:
            sequence.over = sequence.over or isinstance(item, Finish)
            sequence.handover.put(item)

    def _step(self, sequence: _Sequence) -> tuple[Step | Finish, ...]:
        if not sequence.begun:
            sequence.begun = True
            sequence.begin(self._prefixes)
            if forced := sequence.decoding.forced():
                sequence.count(_tokens(forced))
                sequence.read(_tokens(forced), [])
                return forced
        chunk = sequence.pending[:PREFILL_CHUNK]
        del sequence.pending[:PREFILL_CHUNK]
        drafts = [] if sequence.pending else sequence.drafts()
        output = self._model(
            input_ids=torch.tensor([chunk + drafts], device=self._model.device),
            cache=sequence.cache,
            use_cache=True,
            logits_to_keep=1 + len(drafts),
        )
        sequence.known += chunk
        if sequence.pending:
            return ()
        items: tuple[Step | Finish, ...] = ()
        taken: list[int] = []
        # As long as the drafts are what came, the model has read what came already.
        while taken == drafts[: len(taken)]:
            items += self._sample(sequence, output.logits[0, len(taken)])
            taken = _tokens(items)
            if isinstance(items[-1], Finish):
                break
        sequence.read(taken, drafts)
        return items

    def _sample(self, sequence: _Sequence, output: torch.Tensor) -> tuple[Step | Finish, ...]:
        """Draw a token, and take what is forced behind it; `output`: logits, shape (width or more,)."""
        width = self.vocabulary.width
        logits = output[:width].float().cpu().numpy()
        mask = sequence.decoding.mask()
        bias, allowed = (None, width) if mask is None else self._bias.get(mask)
        scores = sequence.sampler.penalised(logits)
        token = sequence.sampler.draw(scores if bias is None else scores + bias)
        probabilities = sequence.sampler.probabilities(logits, bias, token)
        items = sequence.decoding.take(token, allowed, probabilities=probabilities)
        if not isinstance(items[-1], Finish):
            items += sequence.decoding.forced()
        sequence.count(_tokens(items))
        return items


class _Sequence:
    """What the worker keeps of one generation."""

    def __init__(
        self,
        decoding: Decoding,
        prompt: list[int],
        sampler: Sampler,
        cache: DynamicCache,
        handover: Handover[Step | Finish],
    ) -> None:
        self.decoding = decoding
        self.sampler = sampler
        self.cache = cache
        self.handover = handover
        self.pending = prompt
        """Tokens that the model has not seen yet."""
        self.known: list[int] = []
        """Those that it has: the cache holds them."""
        self.begun = False
        self.failed = False
        self.over = False
        """Ended, or its reader has gone: set from either side, acted on by the worker."""

    def begin(self, prefixes: PrefixCache) -> None:
        """Take over what the model has read of the prompt for an earlier sequence."""
        if (found := prefixes.take(self.pending)) is not None:
            self.known, self.cache = found
            del self.pending[: len(self.known)]
            self.decoding.cached_tokens = len(self.known)

    def drafts(self) -> list[int]:
        """Tokens to be read with what is pending, in case they come."""
        return list(self.decoding.likely()[:_DRAFTS]) if can_be_cut(self.cache) else []

    def count(self, tokens: list[int]) -> None:
        """Tokens of the answer: the sampler counts them."""
        for token in tokens:
            self.sampler.took(token)

    def read(self, tokens: list[int], drafts: list[int]) -> None:
        """Tokens of the answer are the model's to read, less what it has read of them as `drafts`."""
        right = common(tokens, drafts)
        self.cache.crop(right - len(drafts))
        self.known += drafts[:right]
        self.pending += tokens[right:]


def _tokens(items: tuple[Step | Finish, ...]) -> list[int]:
    return [item.token for item in items if isinstance(item, Step)]


def _default_device() -> torch.device:
    accelerator = torch.accelerator.current_accelerator(check_available=True)
    return accelerator if accelerator is not None else torch.device("cpu")
