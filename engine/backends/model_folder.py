"""What a Hugging Face model folder says beside its weights. Needs no model library."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from tokenizers import Tokenizer

from larksong.engine.backends.errors import NotAModel
from larksong.engine.backends.model_description import ModelDescription
from larksong.engine.vocabulary import Vocabulary, VocabularyError


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class ModelFolder(ModelDescription):
    """A local model: `config.json`, `tokenizer.json`, `tokenizer_config.json`, chat template, weights."""

    path: Path

    @classmethod
    def open(cls, path: Path) -> Self:
        """Read everything but the weights. Raises NotAModel naming the missing or wrong file."""
        config = _read(path, "config.json")
        text_config = config.get("text_config", config)  # models that also see images nest it
        settings = _read(path, "tokenizer_config.json", optional=True)
        generation = _read(path, "generation_config.json", optional=True)
        bos, eos = (_content(settings.get(key)) for key in ("bos_token", "eos_token"))
        ends: set[str | int] = {
            *_ids(generation.get("eos_token_id")),
            *_ids(text_config.get("eos_token_id")),
            *([eos] if eos else []),
        }
        file = path / "tokenizer.json"
        if not file.is_file():
            raise NotAModel(path, "it has no tokenizer.json")
        try:
            tokenizer = Tokenizer.from_file(str(file))
            vocabulary = Vocabulary.from_tokenizer(tokenizer, eos=ends, width=text_config["vocab_size"])
        except KeyError as error:
            raise NotAModel(path, f"its config.json has no {error}") from error
        except VocabularyError as error:
            raise NotAModel(path, str(error)) from error
        except Exception as error:  # the tokenizers library raises nothing more precise
            raise NotAModel(path, f"its tokenizer.json cannot be read ({error})") from error
        if "max_position_embeddings" not in text_config:
            raise NotAModel(path, "its config.json has no 'max_position_embeddings'")
        return cls(
            path=path,
            name=path.name,
            tokenizer=tokenizer,
            vocabulary=vocabulary,
            context_length=text_config["max_position_embeddings"],
            chat_template=_chat_template(path, settings),
            bos_token=bos,
            eos_token=eos or _text_of(tokenizer, vocabulary),
        )


def _read(path: Path, name: str, *, optional: bool = False) -> dict[str, Any]:
    file = path / name
    if not file.is_file():
        if optional:
            return {}
        raise NotAModel(path, f"it has no {name}")
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise NotAModel(path, f"its {name} is not JSON ({error})") from error
    if not isinstance(content, dict):
        raise NotAModel(path, f"its {name} is not a JSON object")
    return content


def _ids(value: int | list[int] | None) -> list[int]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def _content(token: str | dict[str, Any] | None) -> str:
    """A token in tokenizer_config.json is a string, or an object with its flags."""
    if isinstance(token, dict):
        return str(token["content"])
    return token or ""


def _text_of(tokenizer: Tokenizer, vocabulary: Vocabulary) -> str:
    return next((tokenizer.id_to_token(token) or "" for token in sorted(vocabulary.eos_ids)), "")


def _chat_template(path: Path, settings: dict[str, Any]) -> str | None:
    file = path / "chat_template.jinja"
    if file.is_file():
        return file.read_text(encoding="utf-8")
    template = settings.get("chat_template")
    if isinstance(template, list):  # several, by name
        named = dict(_named(template))
        template = named.get("default", next(iter(named.values()), None))
    return template


def _named(templates: list[dict[str, str]]) -> Iterator[tuple[str, str]]:
    return ((entry["name"], entry["template"]) for entry in templates)
