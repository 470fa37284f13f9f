"""Tokenizers and vocabularies that many tests share; each is made once a run."""

import gc
import ssl
from collections.abc import Iterator
from functools import cache

import hypothesis
import pytest
from tokenizers import Tokenizer

from larksong.engine.backends.model_folder import ModelFolder
from larksong.engine.backends.model_store import find_model
from larksong.engine.vocabulary import Vocabulary
from tests.support.qwen_tokenizer import NotReachable
from tests.support.qwen_tokenizer import qwen_tokenizer as make_qwen_tokenizer
from tests.support.tokenizers import EOS, byte_level_tokenizer

# Tests share the machine with other work: how long an example takes says nothing.
hypothesis.settings.register_profile("larksong", deadline=None)
hypothesis.settings.load_profile("larksong")

# What lives to the end of the run, modules and collected tests first, is millions of objects. The garbage collector
# would walk them all again and again, a third of the time of the whole run: so they are set aside, file after file.
gc.disable()


def pytest_collection_finish() -> None:
    _set_aside()
    gc.set_threshold(100_000, 20, 20)
    gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    yield
    if nextitem is not None and nextitem.path != item.path:
        _set_aside()


def _set_aside() -> None:
    """Collect what is garbage by now, and walk the rest no more."""
    gc.collect()
    gc.freeze()


# Every client of HTTP that is made reads all certificates of the machine, which takes longer than most requests here.
ssl.create_default_context = cache(ssl.create_default_context)

QWEN_WIDTH = 151_936  # columns of the logits of Qwen2.5-7B and Qwen3


@pytest.fixture(scope="session")
def smollm2() -> ModelFolder:
    """The default model's folder; fetched at the first run on a machine."""
    return ModelFolder.open(find_model())


@pytest.fixture(scope="session")
def smollm2_tokenizer(smollm2: ModelFolder) -> Tokenizer:
    return smollm2.tokenizer


@pytest.fixture(scope="session")
def smollm2_vocabulary(smollm2: ModelFolder) -> Vocabulary:
    return smollm2.vocabulary


@pytest.fixture(scope="session")
def qwen_tokenizer() -> Tokenizer:
    try:
        return make_qwen_tokenizer()
    except NotReachable as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def qwen_vocabulary(qwen_tokenizer: Tokenizer) -> Vocabulary:
    return Vocabulary.from_tokenizer(qwen_tokenizer, eos=["<|im_end|>", "<|endoftext|>"], width=QWEN_WIDTH)


@pytest.fixture(scope="session")
def byte_tokenizer() -> Tokenizer:
    """Small and fast: 256 bytes, 300 merges, one end-of-sequence token, no other marker."""
    return byte_level_tokenizer()


@pytest.fixture(scope="session")
def byte_vocabulary(byte_tokenizer: Tokenizer) -> Vocabulary:
    return Vocabulary.from_tokenizer(byte_tokenizer, eos=[EOS])
