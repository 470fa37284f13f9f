"""What a model folder says, in the spellings that real folders use, and which file is wrong when one is."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tokenizers import AddedToken

from larksong.engine.backends.errors import NotAModel
from larksong.engine.backends.model_folder import ModelFolder
from tests.support.tokenizers import EOS, byte_level_tokenizer

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a folder whose JSON files hold the given entries; None leaves the file out."""

    def _write(
        config: dict[str, Any] | None, settings: dict[str, Any] | None, **files: dict[str, Any] | None
    ) -> Path:
        tokenizer = byte_level_tokenizer(added=(AddedToken("<|pad|>", special=True),))
        tokenizer.save(str(tmp_path / "tokenizer.json"))
        contents = {"config": config, "tokenizer_config": settings, **files}
        for name, content in contents.items():
            if content is not None:
                (tmp_path / f"{name}.json").write_text(json.dumps(content))
        return tmp_path

    return _write


CONFIG = {"vocab_size": 600, "max_position_embeddings": 1024}


def test_tokens_may_be_objects_and_templates_a_list(write: Write) -> None:
    templates = [{"name": "tool_use", "template": "T"}, {"name": "default", "template": "D"}]
    folder = ModelFolder.open(
        write(CONFIG, {"eos_token": {"content": EOS, "lstrip": False}, "chat_template": templates})
    )
    assert folder.eos_token == EOS
    assert folder.bos_token == ""
    assert folder.chat_template == "D"
    assert folder.vocabulary.width == 600


def test_a_template_file_comes_before_the_entry(write: Write) -> None:
    path = write(CONFIG, {"eos_token": EOS, "chat_template": "old"})
    (path / "chat_template.jinja").write_text("new")
    assert ModelFolder.open(path).chat_template == "new"


def test_all_end_tokens_count(write: Write) -> None:
    folder = ModelFolder.open(
        write(
            {**CONFIG, "eos_token_id": 300},
            {"eos_token": EOS},
            generation_config={"eos_token_id": [300, 301]},
        )
    )
    assert folder.vocabulary.eos_ids == {300, 301, folder.tokenizer.token_to_id(EOS)}


def test_an_end_token_known_by_id_alone_has_its_text(write: Write) -> None:
    token = byte_level_tokenizer(added=(AddedToken("<|pad|>", special=True),)).token_to_id(EOS)
    folder = ModelFolder.open(write({**CONFIG, "eos_token_id": token}, None))
    assert folder.eos_token == EOS
    assert folder.chat_template is None


def test_the_text_part_of_a_model_that_sees_counts(write: Write) -> None:
    folder = ModelFolder.open(write({"model_type": "sees", "text_config": CONFIG}, {"eos_token": EOS}))
    assert folder.context_length == 1024


@pytest.mark.parametrize(
    ("config", "settings", "message"),
    [
        (None, {}, r"it has no config\.json"),
        ({"max_position_embeddings": 5}, {}, r"config\.json has no 'vocab_size'"),
        ({"vocab_size": 600}, {}, r"config\.json has no 'max_position_embeddings'"),
        (CONFIG, {"eos_token": "<nope>"}, "'<nope>' is not in the vocabulary"),
    ],
)
def test_what_is_missing_is_named(
    write: Write, config: dict[str, Any] | None, settings: dict[str, Any], message: str
) -> None:
    path = write(config, settings)
    with pytest.raises(NotAModel, match=message) as caught:
        ModelFolder.open(path)
    assert str(path) in str(caught.value)


def test_a_missing_or_broken_tokenizer_is_named(write: Write) -> None:
    path = write(CONFIG, None)
    (path / "tokenizer.json").write_text("{}")
    with pytest.raises(NotAModel, match=r"tokenizer\.json cannot be read"):
        ModelFolder.open(path)
    (path / "tokenizer.json").unlink()
    with pytest.raises(NotAModel, match=r"it has no tokenizer\.json"):
        ModelFolder.open(path)


def test_a_file_that_is_not_json_is_named(write: Write) -> None:
    path = write(CONFIG, None)
    (path / "config.json").write_text("{,}")
    with pytest.raises(NotAModel, match=r"its config\.json is not JSON"):
        ModelFolder.open(path)
    (path / "config.json").write_text("[]")
    with pytest.raises(NotAModel, match=r"its config\.json is not a JSON object"):
        ModelFolder.open(path)
