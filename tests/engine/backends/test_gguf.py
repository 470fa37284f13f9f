"""GGUF files: the reader agrees with the gguf package, the direct conversion with that of transformers."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from gguf import GGMLQuantizationType, GGUFReader, GGUFWriter
from gguf.quants import quantize
from safetensors.numpy import load_file
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM

from larksong.engine.backends import gguf_convert
from larksong.engine.backends.errors import NotAModel
from larksong.engine.backends.gguf_file import GgufFile
from larksong.engine.backends.model_folder import ModelFolder
from tests.support.tokenizers import EOS, byte_level_tokenizer

HEADS, KEY_HEADS, HIDDEN, INNER, LAYERS = 4, 2, 64, 96, 2


@pytest.fixture(scope="module")
def tiny_gguf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Llama with random weights, quantized as llama.cpp would, over the small byte-level tokenizer."""
    path = tmp_path_factory.mktemp("gguf") / "tiny.gguf"
    tokenizer = byte_level_tokenizer()
    model = json.loads(tokenizer.to_str())["model"]
    tokens = [tokenizer.id_to_token(i) for i in range(tokenizer.get_vocab_size())]
    writer = GGUFWriter(path, "llama")
    writer.add_context_length(256)
    writer.add_embedding_length(HIDDEN)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KEY_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(HIDDEN // HEADS)
    writer.add_rope_freq_base(5000.0)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(tokens)
    writer.add_token_types([3 if token == EOS else 1 for token in tokens])
    writer.add_token_merges([" ".join(merge) for merge in model["merges"]])
    writer.add_eos_token_id(tokenizer.token_to_id(EOS))
    writer.add_chat_template("{{ messages }}")
    random = np.random.default_rng(0)

    def add(name: str, *shape: int, kind: GGMLQuantizationType = GGMLQuantizationType.Q4_1) -> None:
        weight = random.normal(0, 0.3, shape).astype(np.float32)
        writer.add_tensor(name, quantize(weight, kind), raw_dtype=kind)

    add("token_embd.weight", len(tokens), HIDDEN, kind=GGMLQuantizationType.Q8_0)
    add("output_norm.weight", HIDDEN, kind=GGMLQuantizationType.F32)
    for layer in range(LAYERS):
        add(f"blk.{layer}.attn_norm.weight", HIDDEN, kind=GGMLQuantizationType.F32)
        add(f"blk.{layer}.ffn_norm.weight", HIDDEN, kind=GGMLQuantizationType.F32)
        add(f"blk.{layer}.attn_q.weight", HIDDEN, HIDDEN)
        add(f"blk.{layer}.attn_k.weight", HIDDEN * KEY_HEADS // HEADS, HIDDEN)
        add(f"blk.{layer}.attn_v.weight", HIDDEN * KEY_HEADS // HEADS, HIDDEN)
        add(f"blk.{layer}.attn_output.weight", HIDDEN, HIDDEN, kind=GGMLQuantizationType.F16)
        add(f"blk.{layer}.ffn_gate.weight", INNER, HIDDEN)
        add(f"blk.{layer}.ffn_up.weight", INNER, HIDDEN)
        add(f"blk.{layer}.ffn_down.weight", HIDDEN, INNER)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.fixture(scope="module")
def converted(tiny_gguf: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("converted")
    gguf_convert.convert_gguf(tiny_gguf, folder)
    return folder


def test_the_reader_finds_what_the_gguf_package_finds(tiny_gguf: Path) -> None:
    theirs = GGUFReader(tiny_gguf)
    ours = GgufFile(tiny_gguf)
    for key, field in theirs.fields.items():
        if not key.startswith("GGUF."):
            assert ours.metadata[key] == field.contents(), key
    assert list(ours.tensors) == [tensor.name for tensor in theirs.tensors]
    for tensor in theirs.tensors:
        mine = ours.tensors[tensor.name]
        assert mine.shape == tuple(tensor.shape.tolist()[::-1])
        assert mine.kind == tensor.tensor_type
        data = ours.tensor_bytes(tensor.name, tensor.data.nbytes)
        assert data.tobytes() == tensor.data.tobytes()


def test_both_conversions_give_the_same_weights(tiny_gguf: Path, converted: Path, tmp_path: Path) -> None:
    gguf_convert._convert_with_transformers(tiny_gguf, tmp_path)
    theirs = load_file(tmp_path / "model.safetensors")
    ours = load_file(converted / "model.safetensors")
    assert ours.keys() == theirs.keys()
    for name, weight in theirs.items():
        np.testing.assert_array_equal(ours[name], weight, err_msg=name)
    ids = torch.arange(40).reshape(1, 40)
    with torch.inference_mode():
        one, other = (
            AutoModelForCausalLM.from_pretrained(folder)(ids).logits for folder in (converted, tmp_path)
        )
    assert torch.equal(one, other)


def test_a_file_that_is_not_known_here_goes_through_transformers(
    tiny_gguf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gguf_convert, "_PRE_TOKENIZERS", {})
    gguf_convert.convert_gguf(tiny_gguf, tmp_path)
    folder = ModelFolder.open(tmp_path)
    assert folder.eos_token == EOS
    assert folder.chat_template == "{{ messages }}"


def test_the_converted_folder_tells_what_the_file_says(converted: Path) -> None:
    folder = ModelFolder.open(converted)
    assert folder.context_length == 256
    assert folder.chat_template == "{{ messages }}"
    assert folder.eos_token == EOS
    assert folder.vocabulary.eos_ids == {folder.tokenizer.token_to_id(EOS)}


def test_the_converted_tokenizer_is_the_original_with_digits_apart(
    converted: Path, byte_tokenizer: Tokenizer
) -> None:
    tokenizer = Tokenizer.from_file(str(converted / "tokenizer.json"))
    text = "The weather in Tokyo\n" + EOS
    assert tokenizer.encode(text).ids == byte_tokenizer.encode(text).ids
    assert tokenizer.encode("12 345").tokens == ["1", "2", "\u0120", "3", "4", "5"]


def test_a_file_of_another_kind_is_not_a_model(tmp_path: Path) -> None:
    for content in (b"", b"PK\x03\x04 something"):
        file = tmp_path / "model.gguf"
        file.write_bytes(content)
        with pytest.raises(NotAModel, match=r"model\.gguf is not a model: it does not begin with"):
            GgufFile(file)


@pytest.mark.parametrize("kept", [5, 30, 500, 3000])
def test_a_header_that_is_cut_off_is_not_a_model(tiny_gguf: Path, tmp_path: Path, kept: int) -> None:
    file = tmp_path / "cut.gguf"
    file.write_bytes(tiny_gguf.read_bytes()[:kept])
    with pytest.raises(NotAModel, match="damaged or cut off"):
        GgufFile(file)


def test_tensors_that_are_cut_off_are_not_a_model(tiny_gguf: Path, tmp_path: Path) -> None:
    file = tmp_path / "cut.gguf"
    file.write_bytes(tiny_gguf.read_bytes()[:-1000])
    with pytest.raises(NotAModel, match="cut off in the tensor"):
        gguf_convert.convert_gguf(file, tmp_path)


def test_an_unknown_version_is_named(tmp_path: Path) -> None:
    file = tmp_path / "new.gguf"
    file.write_bytes(b"GGUF" + (9).to_bytes(4, "little") + bytes(16))
    with pytest.raises(NotAModel, match="version 9 is not known"):
        GgufFile(file)


def test_an_unknown_architecture_is_not_a_model(tmp_path: Path) -> None:
    file = tmp_path / "odd.gguf"
    writer = GGUFWriter(file, "no-such-architecture")
    writer.add_tensor("x", np.zeros((2, 2), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with pytest.raises(NotAModel, match="transformers cannot read it"):
        gguf_convert.convert_gguf(file, tmp_path)
