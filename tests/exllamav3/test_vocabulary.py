"""The bytes of exllamav3's tokens."""

from __future__ import annotations

import json
import re
from pathlib import Path

from exllamav3 import Config, Tokenizer

from larksong.engine.backends.exllamav3.vocabulary import encoder_of, vocabulary_of
from larksong.engine.backends.model_folder import ModelFolder
from tests.exllamav3.folder import END_OF_TEXT, PADDING, write_folder
from tests.exllamav3.rig import Rig
from tests.support.tokenizers import EOS, SAMPLE, byte_fallback_tokenizer


def test_texts_come_back_byte_by_byte_where_exllamav3s_pieces_do_not(rig: Rig) -> None:
    text = re.sub("</?tool_call>", "", SAMPLE) + "é日本 \U0001f469\u200d\U0001f680"
    ids = rig.encode(text)
    assert b"".join(rig.vocabulary.tokens[token] for token in ids) == text.encode()
    pieces = rig.tokenizer.get_id_to_piece_list()
    assert "\ufffd" in "".join(pieces[token] for token in ids)


def test_the_three_widths_are_told_apart(rig: Rig) -> None:
    known, columns = rig.tokenizer.actual_vocab_size, rig.tokenizer.config.vocab_size
    assert len(rig.vocabulary.tokens) == known
    assert rig.vocabulary.width == columns == known + PADDING
    assert rig.generator().padded_vocab_size > columns


def test_it_is_what_the_folder_says(rig: Rig, folder: Path) -> None:
    assert rig.vocabulary.fingerprint == ModelFolder.open(folder).vocabulary.fingerprint
    assert set(rig.vocabulary.special) == {
        EOS, END_OF_TEXT, "<tool_call>", "</tool_call>", "<think>", "</think>",
    }  # fmt: skip
    assert len(rig.vocabulary.eos_ids) == 2


def test_a_marker_that_tokenizer_json_lacks_is_one_all_the_same(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "model")
    known = json.loads((folder / "tokenizer.json").read_text())["added_tokens"]
    token = max(entry["id"] for entry in known) + 2
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    settings["added_tokens_decoder"] = {
        str(token): {"content": "<|late|>", "special": True, "lstrip": False, "rstrip": False,
                     "normalized": False, "single_word": False}
    }  # fmt: skip
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    vocabulary = vocabulary_of(Tokenizer.from_config(Config.from_directory(str(folder))))
    assert vocabulary.special["<|late|>"] == token
    assert vocabulary.tokens[token] == b""


def test_encoding_does_not_depend_on_what_exllamav3_encoded_before(rig: Rig) -> None:
    encode = encoder_of(rig.tokenizer, rig.vocabulary)
    text = "<tool_call>\n{"
    wanted = encode(text)
    for special in (True, False):
        rig.tokenizer.encode(text, encode_special_tokens=special)
        assert encode(text) == wanted


def test_sentencepiece_with_byte_fallback(tmp_path: Path) -> None:

    folder = write_folder(tmp_path / "model")
    tokenizer = byte_fallback_tokenizer(dummy_prefix=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    config = json.loads((folder / "config.json").read_text())
    config |= {"vocab_size": tokenizer.get_vocab_size() + 3, "eos_token_id": tokenizer.token_to_id("</s>")}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer_config.json").write_text(json.dumps({"eos_token": "</s>", "bos_token": "<s>"}))
    loaded = Tokenizer.from_config(Config.from_directory(str(folder)))
    vocabulary = vocabulary_of(loaded)
    text = 'Größe {"a": 1}\n日'
    ids = encoder_of(loaded, vocabulary)(text)
    assert b"".join(vocabulary.tokens[token] for token in ids) == text.encode()
