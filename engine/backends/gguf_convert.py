"""A GGUF file turned into a Hugging Face model folder, with the weights in float32.

Two ways. The files that this project's default model is one of (Llama layout, a byte-level tokenizer whose
pre-tokenizer is known here) are converted directly: 2 s and no model library. All others go through
transformers, which knows many architectures and takes half a minute even for small ones.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import AddedToken, Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE

from larksong.engine.backends.errors import NotAModel
from larksong.engine.backends.gguf_file import GgufFile

_BYTE_LEVEL = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
# GGUF names the pre-tokenizer (`tokenizer.ggml.pre`) instead of describing it; llama-vocab.cpp of llama.cpp
# lists them. SmolLM splits digits before GPT-2's expression.
_PRE_TOKENIZERS = {
    "gpt-2": _BYTE_LEVEL,
    "smollm": pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), _BYTE_LEVEL]),
}
_CONTROL, _USER_DEFINED = 3, 4  # token types: a marker, and text that is matched before the merges

_LAYER_WEIGHTS = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_OUTER_WEIGHTS = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
_LAYER = re.compile(r"blk\.(\d+)\.(\w+)\.weight")


def convert_gguf(path: Path, folder: Path) -> None:
    """Write the model in the GGUF file `path` into the existing, empty `folder`.

    Raises NotAModel for a file that is damaged or of an architecture that nobody here knows.
    """
    file = GgufFile(path)
    if "general.architecture" not in file.metadata or not file.tensors:
        raise NotAModel(path, "it is a GGUF file without a model in it")
    names = _huggingface_names(file)
    if names is None or not _has_known_tokenizer(file.metadata):
        _convert_with_transformers(path, folder)
        return
    _write_tokenizer(file.metadata, folder)
    _write_config(file, folder)
    _write_weights(file, names, folder)


def _huggingface_names(file: GgufFile) -> dict[str, str] | None:
    """Tensor name in GGUF to the name in transformers; None unless it is a plain Llama."""
    if file.metadata["general.architecture"] != "llama" or "llama.rope.scaling.type" in file.metadata:
        return None
    names = {}
    for name in file.tensors:
        layer = _LAYER.fullmatch(name)
        if layer and layer[2] in _LAYER_WEIGHTS:
            names[name] = f"model.layers.{layer[1]}.{_LAYER_WEIGHTS[layer[2]]}.weight"
        elif name in _OUTER_WEIGHTS:
            names[name] = _OUTER_WEIGHTS[name]
        else:  # biases, experts, scaled rotary embeddings
            return None
    return names


def _has_known_tokenizer(metadata: Mapping[str, Any]) -> bool:
    return (
        metadata.get("tokenizer.ggml.model") == "gpt2"
        and metadata.get("tokenizer.ggml.pre") in _PRE_TOKENIZERS
    )


def _write_tokenizer(metadata: Mapping[str, Any], folder: Path) -> None:
    tokens: list[str] = metadata["tokenizer.ggml.tokens"]
    merges = [tuple(merge.split(" ")) for merge in metadata["tokenizer.ggml.merges"]]
    tokenizer = Tokenizer(BPE(vocab={token: i for i, token in enumerate(tokens)}, merges=merges))
    tokenizer.pre_tokenizer = _PRE_TOKENIZERS[metadata["tokenizer.ggml.pre"]]
    tokenizer.decoder = decoders.ByteLevel()
    kinds = metadata["tokenizer.ggml.token_type"]
    added = [
        AddedToken(token, special=kind == _CONTROL, normalized=False)
        for token, kind in zip(tokens, kinds, strict=True)
        if kind in (_CONTROL, _USER_DEFINED)
    ]
    tokenizer.add_tokens(added)
    tokenizer.save(str(folder / "tokenizer.json"))

    def token(name: str) -> str | None:
        token_id = metadata.get(f"tokenizer.ggml.{name}_token_id")
        return None if token_id is None else tokens[token_id]

    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": token("bos"),
        "eos_token": token("eos"),
        "pad_token": token("padding"),
        "unk_token": token("unknown"),
        "chat_template": metadata.get("tokenizer.chat_template"),
        "model_max_length": metadata["llama.context_length"],
        "clean_up_tokenization_spaces": False,
    }
    _write_json(folder / "tokenizer_config.json", settings)


def _write_config(file: GgufFile, folder: Path) -> None:
    def llama(key: str) -> Any:
        return file.metadata[f"llama.{key}"]

    heads = llama("attention.head_count")
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": file.tensors["token_embd.weight"].shape[0],
        "hidden_size": llama("embedding_length"),
        "intermediate_size": llama("feed_forward_length"),
        "num_hidden_layers": llama("block_count"),
        "num_attention_heads": heads,
        "num_key_value_heads": llama("attention.head_count_kv"),
        "head_dim": file.metadata.get("llama.rope.dimension_count", llama("embedding_length") // heads),
        "max_position_embeddings": llama("context_length"),
        "rms_norm_eps": llama("attention.layer_norm_rms_epsilon"),
        "rope_theta": file.metadata.get("llama.rope.freq_base", 10000.0),
        "hidden_act": "silu",
        "tie_word_embeddings": "output.weight" not in file.tensors,
        "bos_token_id": file.metadata.get("tokenizer.ggml.bos_token_id"),
        "eos_token_id": file.metadata.get("tokenizer.ggml.eos_token_id"),
        "dtype": "float32",
    }
    _write_json(folder / "config.json", config)


def _write_weights(file: GgufFile, names: Mapping[str, str], folder: Path) -> None:
    from safetensors.numpy import save_file

    heads = file.metadata["llama.attention.head_count"]
    key_heads = file.metadata["llama.attention.head_count_kv"]
    weights = {}
    for name, target in names.items():
        weight = _dequantize(file, name)
        if name.endswith("attn_q.weight"):
            weight = _unpermute(weight, heads)
        elif name.endswith("attn_k.weight"):
            weight = _unpermute(weight, key_heads)
        weights[target] = weight
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def _dequantize(file: GgufFile, name: str) -> NDArray[np.float32]:
    from gguf import GGML_QUANT_SIZES, GGMLQuantizationType
    from gguf.quants import dequantize

    tensor = file.tensors[name]
    kind = GGMLQuantizationType(tensor.kind)
    block, block_bytes = GGML_QUANT_SIZES[kind]
    *rows, columns = tensor.shape
    row_bytes = columns // block * block_bytes
    data = file.tensor_bytes(name, int(np.prod(rows, dtype=np.int64)) * row_bytes)
    weight: NDArray[np.float32] = dequantize(data.reshape(*rows, row_bytes), kind)
    return weight


def _unpermute(weight: NDArray[np.float32], heads: int) -> NDArray[np.float32]:
    """Rows of a query or key projection from GGUF's order (rotary pairs adjacent) to transformers' (halves).

    Source: the inverse of `LlamaModel.permute` in llama.cpp's convert_hf_to_gguf.py.
    """
    rows, columns = weight.shape
    pairs = weight.reshape(heads, rows // heads // 2, 2, columns)
    return np.ascontiguousarray(pairs.swapaxes(1, 2)).reshape(rows, columns)


def _convert_with_transformers(path: Path, folder: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    source = {"gguf_file": path.name}
    try:
        tokenizer = AutoTokenizer.from_pretrained(path.parent, **source)
        model = AutoModelForCausalLM.from_pretrained(
            path.parent, **source, quantization_config=GgufConfig(dequantize=True), dtype=torch.float32
        )
    except (ValueError, KeyError, NotImplementedError, RuntimeError) as error:
        raise NotAModel(path, f"transformers cannot read it ({error})") from error
    # The weights are plain by now; saving still asks the quantizer that read them.
    vars(model).update(hf_quantizer=None, is_quantized=False)
    vars(model.config).pop("quantization_config", None)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def _write_json(path: Path, content: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False), encoding="utf-8")
