"""Small tokenizers made on the spot: byte-level BPE, and SentencePiece-style BPE with byte fallback."""

import json

from tokenizers import AddedToken, Regex, Tokenizer, decoders, normalizers, pre_tokenizers, trainers
from tokenizers.models import BPE

EOS = "<|end|>"

# Something of everything that turns hold, so that merges cross JSON, markup, code and several scripts.
SAMPLE = """\
<tool_call>
{"name": "get_weather", "arguments": {"city": "Amsterdam", "unit": "celsius", "days": 3, "hourly": true}}
</tool_call>
<tool_call>
<function=write_file>
<parameter=path>
src/main.py
</parameter>
<parameter=content>
def main(argv: list[str]) -> int:
    for number, line in enumerate(read_lines(argv[1])):
        if not line.strip():
            continue
        print(f"{number}: {line!r}", end="\\n\\n")
    return 0
</parameter>
</function>
</tool_call>
The weather in Tokyo is sunny today, and tomorrow it will rain in the morning. Please answer the question.
{"type": "object", "properties": {"items": {"type": "array", "items": {"type": "string"}}}, "required": []}
{"a": null, "b": [1, 2.5, -3e10], "c": "\\u00e9\\n", "d": false, "enum": ["low", "medium", "high"], "e": {}}
Größe, naïve café, señor; Привет, мир; 日本語のテキスト; 中文文本; नमस्ते; 👋🏽 hello 😀 — “quotes” … done.
"""


def byte_level_tokenizer(merges: int = 300, added: tuple[AddedToken, ...] = (), eos: str = EOS) -> Tokenizer:
    """256 bytes, up to `merges` merges learned from SAMPLE, the `added` tokens, and `eos`."""
    tokenizer = Tokenizer(BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=256 + merges,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([SAMPLE], trainer)
    tokenizer.add_tokens([*added, AddedToken(eos, special=True, normalized=False)])
    return tokenizer


def byte_fallback_tokenizer(*, dummy_prefix: bool, added: tuple[AddedToken, ...] = ()) -> Tokenizer:
    """Llama-2's kind, as converted from SentencePiece: U+2581 for blanks, `<0x0A>` for what has no piece.

    The pieces are learned from the ASCII part of SAMPLE; with `dummy_prefix` a blank goes before each text.
    """
    ascii_lines = [line for line in SAMPLE.splitlines() if line.isascii()]
    marked = [line.replace(" ", "\u2581") for line in ascii_lines]
    learner = Tokenizer(BPE())
    learner.pre_tokenizer = pre_tokenizers.Split(Regex("\u2581?[^\u2581]+"), behavior="isolated")
    learner.train_from_iterator(marked, trainers.BpeTrainer(vocab_size=400, show_progress=False))

    specials = ["<unk>", "<s>", "</s>"]
    byte_tokens = [f"<0x{byte:02X}>" for byte in range(256)]
    learned = sorted(learner.get_vocab().items(), key=lambda entry: entry[1])
    vocab = {token: i for i, token in enumerate([*specials, *byte_tokens, *(token for token, _ in learned)])}
    tokenizer = Tokenizer(
        BPE(vocab=vocab, merges=_merges(learner), unk_token="<unk>", fuse_unk=True, byte_fallback=True)
    )
    to_mark = normalizers.Replace(" ", "\u2581")
    strip = [decoders.Strip(" ", 1, 0)] if dummy_prefix else []
    tokenizer.normalizer = (
        normalizers.Sequence([normalizers.Prepend("\u2581"), to_mark]) if dummy_prefix else to_mark
    )
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(), *strip]
    )
    tokenizer.add_tokens([*(AddedToken(token, special=True, normalized=False) for token in specials), *added])
    return tokenizer


def _merges(tokenizer: Tokenizer) -> list[tuple[str, str]]:
    merges = json.loads(tokenizer.to_str())["model"]["merges"]
    return [(left, right) for left, right in merges]
