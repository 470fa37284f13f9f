"""exllamav3 as a backend: a model folder on one or more GPUs, many requests at once."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any, Self

import torch
from exllamav3 import Cache, CacheLayer_quant, Config, Generator, Model
from exllamav3 import Tokenizer as ExllamaTokenizer

from larksong.engine.backends.base import Finish, Generation, Step
from larksong.engine.backends.errors import BackendUnavailable, ModelNotFound, NotAModel
from larksong.engine.backends.exllamav3.drafts import ForcedDraftGenerator
from larksong.engine.backends.exllamav3.sequence import Item, Sequence
from larksong.engine.backends.exllamav3.settings import ExllamaV3Settings
from larksong.engine.backends.exllamav3.version import TESTED, installed
from larksong.engine.backends.exllamav3.vocabulary import vocabulary_of
from larksong.engine.backends.exllamav3.worker import Worker
from larksong.engine.backends.handover import Handover
from larksong.engine.backends.model_description import DescribedBackend
from larksong.engine.backends.model_folder import ModelFolder

_log = logging.getLogger(__name__)

_UNREAD_STEPS = 64  # a job leaves the batch when its reader is this far behind


class ExllamaV3Backend(DescribedBackend):
    """A `Backend` (see base.py) over a loaded model. `close()` ends its thread and unloads the model."""

    unsupported: frozenset[str] = frozenset()

    def __init__(
        self,
        model: Model,
        cache: Cache,
        tokenizer: ExllamaTokenizer,
        folder: ModelFolder,
        settings: ExllamaV3Settings,
        draft: tuple[Model, Cache] | None = None,
    ) -> None:
        """`cache` and `draft` were made before `model` was loaded, as exllamav3 wants it."""
        super().__init__(folder)
        self._model = model
        self._cache = cache
        self._draft = draft
        self._exllama_tokenizer = tokenizer
        self._settings = settings
        self.vocabulary = vocabulary_of(tokenizer)
        self._worker = Worker(self._make_generator)
        for name in ("forward", "prefill"):
            setattr(model, name, _after(self._worker.tell, getattr(model, name)))
        generator = self._worker.generator
        room = generator.max_total_tokens - 1 - generator.max_draft_tokens
        self.context_length = min(folder.context_length, settings.max_sequence or room, room)

    @classmethod
    def load(cls, model: str | Path, settings: ExllamaV3Settings | None = None) -> Self:
        """Load a model folder: EXL3, or a Hugging Face folder in fp16. Takes seconds to minutes.

        Raises ModelNotFound, NotAModel, or BackendUnavailable for devices that are not there.
        """
        path = _found(model)
        settings = settings or ExllamaV3Settings()
        _check_devices(settings)
        folder = ModelFolder.open(path)
        draft = None
        if settings.draft_model is not None:
            guesses = _found(settings.draft_model)
            _check_draft(guesses, folder)
            draft = _load(guesses, settings, None)
        loaded, cache = _load(path, settings, draft[0] if draft else None)
        tokenizer = ExllamaTokenizer.from_config(loaded.config)
        try:
            return cls(loaded, cache, tokenizer, folder, settings, draft)
        except (AssertionError, ValueError) as error:
            raise NotAModel(path, f"exllamav3 cannot run it ({error})") from error

    def generate(self, generation: Generation) -> AsyncGenerator[Step | Finish, None]:
        """See Backend.generate."""
        return self._run(self.sequence(generation))

    def sequence(self, generation: Generation) -> Sequence:
        """What the worker runs for a generation."""
        return Sequence(
            generation,
            self._exllama_tokenizer,
            self.vocabulary,
            self.context_length,
            self._settings.requeue_tokens,
            self._settings.mass_share,
        )

    async def _run(self, sequence: Sequence) -> AsyncGenerator[Step | Finish, None]:
        handover = sequence.handover = Handover[Item](_UNREAD_STEPS, self._worker.wake)
        if not self._worker.start(sequence):
            yield sequence.end("error", error="the backend is closed")
            return
        try:
            while True:
                item = await handover.get()
                yield item
                if isinstance(item, Finish):
                    return
        finally:
            sequence.gone = True
            self._worker.wake()

    def close(self) -> None:
        """See Backend.close."""
        self._worker.close()
        self._model.unload()
        if self._draft is not None:
            self._draft[0].unload()

    def _make_generator(self) -> Generator:
        settings = self._settings
        draft_model, draft_cache = self._draft or (None, None)
        options: dict[str, Any] = {
            "model": self._model,
            "cache": self._cache,
            "tokenizer": self._exllama_tokenizer,
            "max_batch_size": settings.max_batch,
            "max_chunk_size": settings.chunk_size,
            "draft_model": draft_model,
            "draft_cache": draft_cache,
            "num_draft_tokens": settings.draft_tokens,
            "ngram_match_min": settings.ngram_draft,
        }
        if self._drafts_forced():
            return ForcedDraftGenerator(forced_draft=settings.forced_draft, **options)
        return Generator(**options)

    def _drafts_forced(self) -> bool:
        wanted = self._settings.forced_draft
        version = installed()
        if wanted and version not in TESTED:
            _log.warning(
                "forced tokens are off: exllamav3 %s is not among the tested versions (%s)",
                version,
                ", ".join(sorted(TESTED)),
            )
            return False
        if wanted and self._model.caps.get("recurrent_states") and self._cache.max_history < wanted:
            _log.warning(
                "forced tokens are off: this model's recurrent state cannot go back %d tokens", wanted
            )
            return False
        return bool(wanted)


def _after(before: Callable[[], None], function: Callable[..., Any]) -> Callable[..., Any]:
    def both(*args: Any, **kwargs: Any) -> Any:
        before()
        return function(*args, **kwargs)

    return both


def _found(model: str | Path) -> Path:
    path = Path(model).expanduser()
    if path.is_file():
        raise NotAModel(path, "exllamav3 loads folders, and it is a file")
    if not path.is_dir():
        raise ModelNotFound(path, "exllamav3 loads folders, and there is none")
    return path


def _check_devices(settings: ExllamaV3Settings) -> None:
    """exllamav3 would say nothing that helps."""
    found = torch.cuda.device_count()
    has = f"torch finds {found} GPU{'' if found == 1 else 's'}"
    if settings.device is not None:
        try:
            device = _device(settings.device)
        except RuntimeError:
            wrong = f"device must be one such as cuda:0, not {settings.device!r}"
            raise BackendUnavailable("exllamav3", wrong) from None
        if device.type == "cuda" and (device.index or 0) >= found:
            raise BackendUnavailable("exllamav3", f"device is {device}, and {has}")
    elif not found:
        raise BackendUnavailable("exllamav3", has)
    elif settings.gpu_split is not None and any(settings.gpu_split[found:]):
        raise BackendUnavailable("exllamav3", f"gpu_split has {len(settings.gpu_split)} numbers, and {has}")


def _device(name: str) -> torch.device:
    """`cuda:0`, `cuda` or `0`. Raises RuntimeError for what is no device."""
    device = torch.device(f"cuda:{name}" if name.isdecimal() else name)
    return torch.device("cuda", 0) if device.type == "cuda" and device.index is None else device


def _check_draft(path: Path, folder: ModelFolder) -> None:
    """exllamav3 hands over token ids, whatever they mean. Some drafts have no tokenizer of their own."""
    if not (path / "tokenizer.json").is_file():
        return
    ours, theirs = folder.vocabulary, ModelFolder.open(path).vocabulary
    if any(one != other for one, other in zip(ours.tokens, theirs.tokens, strict=False)):
        raise NotAModel(path, f"a draft model must have the tokenizer of {folder.name}, and its is another")


def _load(path: Path, settings: ExllamaV3Settings, draft: Model | None) -> tuple[Model, Cache]:
    try:
        config = Config.from_directory(str(path))
        model = Model.from_config(config)
        guessed = settings.draft_tokens or (draft or model).caps.get("default_draft_size", 4)
        drafted = max(settings.forced_draft, guessed)
        quantised: dict[str, Any] = {}
        if settings.cache_bits is not None:
            keys, values = settings.cache_bits
            quantised = {"layer_type": CacheLayer_quant, "k_bits": keys, "v_bits": values}
        cache = Cache(
            model,
            max_num_tokens=settings.cache_size,
            max_batch_size=settings.max_batch,
            max_history=drafted,  # what a recurrent model must be able to take back
            **quantised,
        )
        where: dict[str, Any]
        if settings.device is not None:
            where = {"device": _device(settings.device)}
        else:
            where = {
                "tensor_p": settings.tensor_parallel,
                "draft_model": draft,
                "max_output_size": settings.max_batch * (1 + drafted),  # each drafted token has logits
                "use_per_device": None if settings.gpu_split is None else list(settings.gpu_split),
            }
        model.load(max_chunk_size=settings.chunk_size, max_batch_size=settings.max_batch, **where)
    except (AssertionError, ValueError, OSError, KeyError, RuntimeError) as error:
        raise NotAModel(path, f"exllamav3 cannot load it ({error})") from error
    return model, cache
