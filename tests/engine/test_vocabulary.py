"""The bytes of an encoded text's ids are the text's bytes, markers are apart, errors say what is wrong."""

import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE, WordPiece

from larksong.engine.vocabulary import Vocabulary, VocabularyError
from tests.support.tokenizers import EOS, SAMPLE, byte_fallback_tokenizer, byte_level_tokenizer

TEXTS = st.text(st.characters(exclude_categories=["Cs"])) | st.lists(
    st.sampled_from([*SAMPLE.split(" "), " ", "\n", "\n\n  ", "<", "|>", "\u00e9", "\u0301", "\U0001f44b"])
).map("".join)

HARD_TEXTS = [
    "",
    " ",
    " leading blank",
    "two  blanks,\ttab\r\n\r\n  and   more ",
    "a\u0300\u0323 combining",
    "\u0000\u0001\u007f control",
    "emoji \U0001f469\u200d\U0001f4bb\U0001f1f3\U0001f1f1",
    '{"name": "x", "arguments": {"n": -1.5e10}}',
    "def f():\n\treturn 'it''s' 12345678\n",
    "日本語 नमस्ते עברית",
]


def ids(tokenizer: Tokenizer, text: str) -> list[int]:
    found: list[int] = tokenizer.encode(text, add_special_tokens=False).ids
    return found


def writable(vocabulary: Vocabulary, text: str) -> str:
    """The text without the characters that the vocabulary lacks a byte of: a tokenizer drops those."""
    single = {token[0] for token in vocabulary.tokens if len(token) == 1}
    return "".join(char for char in text if single.issuperset(char.encode()))


def has_marker(vocabulary: Vocabulary, text: str) -> bool:
    return any(marker in text for marker in vocabulary.special)


@pytest.mark.parametrize("text", HARD_TEXTS)
@pytest.mark.parametrize("model", ["smollm2", "qwen", "byte"])
def test_bytes_of_encoded_ids_are_the_bytes_of_the_text(
    request: pytest.FixtureRequest, model: str, text: str
) -> None:
    tokenizer: Tokenizer = request.getfixturevalue(f"{model}_tokenizer")
    vocabulary: Vocabulary = request.getfixturevalue(f"{model}_vocabulary")
    if model == "smollm2":
        text = writable(vocabulary, text)
    expected = unicodedata.normalize("NFC", text) if model == "qwen" else text
    assert vocabulary.decode(ids(tokenizer, text)) == expected.encode()


@given(text=TEXTS)
def test_smollm2_is_exact_for_any_text(
    smollm2_tokenizer: Tokenizer, smollm2_vocabulary: Vocabulary, text: str
) -> None:
    text = writable(smollm2_vocabulary, text)
    if not has_marker(smollm2_vocabulary, text):
        assert smollm2_vocabulary.decode(ids(smollm2_tokenizer, text)) == text.encode()


@given(text=TEXTS)
def test_qwen_is_exact_for_any_text_after_its_own_normalisation(
    qwen_tokenizer: Tokenizer, qwen_vocabulary: Vocabulary, text: str
) -> None:
    if not has_marker(qwen_vocabulary, text):
        expected = unicodedata.normalize("NFC", text).encode()
        assert qwen_vocabulary.decode(ids(qwen_tokenizer, text)) == expected


@given(text=TEXTS)
def test_byte_level_made_here_is_exact_for_any_text(
    byte_tokenizer: Tokenizer, byte_vocabulary: Vocabulary, text: str
) -> None:
    if EOS not in text:
        assert byte_vocabulary.decode(ids(byte_tokenizer, text)) == text.encode()


@pytest.fixture(scope="module", params=[True, False], ids=["dummy prefix", "no prefix"])
def fallback_tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    return byte_fallback_tokenizer(dummy_prefix=request.param)


@given(text=TEXTS)
def test_byte_fallback_is_exact_for_any_text(fallback_tokenizer: Tokenizer, text: str) -> None:
    vocabulary = Vocabulary.from_tokenizer(fallback_tokenizer, eos=["</s>"])
    # SentencePiece's own normalisation takes U+2581 for a blank.
    if not has_marker(vocabulary, text):
        expected = text.replace("\u2581", " ").encode()
        assert vocabulary.decode(ids(fallback_tokenizer, text)) == expected


def test_byte_fallback_tokens_are_single_bytes_and_blanks_are_blanks() -> None:
    tokenizer = byte_fallback_tokenizer(dummy_prefix=True)
    vocabulary = Vocabulary.from_tokenizer(tokenizer, eos=["</s>"])
    assert vocabulary.tokens[tokenizer.token_to_id("<0x0A>")] == b"\n"
    assert vocabulary.tokens[tokenizer.token_to_id("<0xFF>")] == b"\xff"
    assert vocabulary.tokens[tokenizer.token_to_id("\u2581")] == b" "
    assert vocabulary.prefix == b" "


def test_metaspace_with_a_prefix_is_exact_for_texts_without_a_leading_blank() -> None:
    tokenizer = byte_fallback_tokenizer(dummy_prefix=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    vocabulary = Vocabulary.from_tokenizer(tokenizer, eos=["</s>"])
    assert vocabulary.decode(ids(tokenizer, "rain in  Tokyo")) == b"rain in  Tokyo"


def test_byte_level_prefix_space_is_left_out_of_a_decoded_text() -> None:
    tokenizer = byte_level_tokenizer()
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    vocabulary = Vocabulary.from_tokenizer(tokenizer, eos=[EOS])
    assert vocabulary.decode(ids(tokenizer, "rain in Tokyo")) == b"rain in Tokyo"


def test_markers_are_apart_from_text_whatever_their_flag(qwen_vocabulary: Vocabulary) -> None:
    assert qwen_vocabulary.special["<tool_call>"] == 151657  # special: false in Qwen's file
    assert qwen_vocabulary.special["<|im_end|>"] == 151645
    assert len(qwen_vocabulary.special) == 26
    assert all(qwen_vocabulary.tokens[token] == b"" for token in qwen_vocabulary.special.values())


def test_blanks_and_letters_among_the_added_tokens_are_text() -> None:
    added = tuple(
        AddedToken(text, special=special, normalized=False)
        for text, special in [
            ("    ", False),
            ("\n\n\n", False),
            ("\u00f8", False),
            ("  ", True),
            ("<h1>", False),
        ]
    )
    tokenizer = byte_level_tokenizer(added=added)
    vocabulary = Vocabulary.from_tokenizer(tokenizer, eos=[EOS])
    assert set(vocabulary.special) == {EOS, "  ", "<h1>"}
    for text in ("    ", "\n\n\n", "\u00f8"):
        assert vocabulary.tokens[tokenizer.token_to_id(text)] == text.encode()
    assert vocabulary.decode(ids(tokenizer, "s\u00f8t\n\n\n    x")) == "s\u00f8t\n\n\n    x".encode()


def test_a_token_that_is_a_piece_of_markers_stands_for_its_letters() -> None:
    added = (AddedToken("｜DSML｜", special=True), AddedToken("<｜User｜>", special=True))
    vocabulary = Vocabulary.from_tokenizer(byte_level_tokenizer(added=added), eos=[EOS])
    assert "｜DSML｜".encode() in vocabulary.tokens
    assert set(vocabulary.special) == {EOS, "<｜User｜>"}


def test_added_blanks_spelled_as_in_sentencepiece_are_text() -> None:
    tokenizer = byte_fallback_tokenizer(
        dummy_prefix=False, added=(AddedToken("\u2581\u2581\u2581", normalized=True),)
    )
    vocabulary = Vocabulary.from_tokenizer(tokenizer, eos=["</s>"])
    assert vocabulary.tokens[tokenizer.token_to_id("\u2581\u2581\u2581")] == b"   "


def test_unknown_and_end_tokens_are_no_text_even_when_the_file_does_not_add_them() -> None:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocab = {token: i for i, token in enumerate(["unk", "end", *alphabet])}
    tokenizer = Tokenizer(BPE(vocab=vocab, merges=[], unk_token="unk"))
    tokenizer.decoder = decoders.ByteLevel()
    vocabulary = Vocabulary.from_tokenizer(tokenizer, eos=["end"])
    assert vocabulary.special == {"unk": 0, "end": 1}
    assert vocabulary.eos_ids == {1}
    assert vocabulary.tokens[:2] == (b"", b"")


def test_eos_may_be_named_or_numbered(byte_tokenizer: Tokenizer) -> None:
    token = byte_tokenizer.token_to_id(EOS)
    by_name = Vocabulary.from_tokenizer(byte_tokenizer, eos=[EOS])
    by_number = Vocabulary.from_tokenizer(byte_tokenizer, eos=[token])
    assert by_name.eos_ids == by_number.eos_ids == {token}


def test_width_is_that_of_the_logits(qwen_vocabulary: Vocabulary, byte_tokenizer: Tokenizer) -> None:
    assert len(qwen_vocabulary.tokens) == 151669
    assert qwen_vocabulary.width == 151936
    assert Vocabulary.from_tokenizer(byte_tokenizer).width == byte_tokenizer.get_vocab_size()


def test_ids_beyond_the_logits_are_left_out() -> None:
    tokenizer = byte_level_tokenizer(added=(AddedToken("<image>", special=True),))
    width = tokenizer.token_to_id("<image>")
    vocabulary = Vocabulary.from_tokenizer(tokenizer, width=width)
    assert len(vocabulary.tokens) == vocabulary.width == width
    assert vocabulary.special == {}


def test_fingerprint_follows_content(byte_tokenizer: Tokenizer) -> None:
    one = Vocabulary.from_tokenizer(byte_tokenizer, eos=[EOS])
    same = Vocabulary.from_tokenizer(byte_tokenizer, eos=[EOS])
    wider = Vocabulary.from_tokenizer(byte_tokenizer, eos=[EOS], width=1024)
    endless = Vocabulary.from_tokenizer(byte_tokenizer)
    assert one.fingerprint == same.fingerprint
    assert len({one.fingerprint, wider.fingerprint, endless.fingerprint}) == 3


def test_a_file_is_read_like_the_tokenizer(tmp_path: Path, byte_tokenizer: Tokenizer) -> None:
    file = tmp_path / "tokenizer.json"
    byte_tokenizer.save(str(file))
    read = Vocabulary.from_tokenizer(file, eos=[EOS])
    assert read.fingerprint == Vocabulary.from_tokenizer(byte_tokenizer, eos=[EOS]).fingerprint


def test_a_file_that_is_no_tokenizer_is_named(tmp_path: Path) -> None:
    file = tmp_path / "tokenizer.json"
    file.write_text('{"model": 1}')
    with pytest.raises(VocabularyError, match=r"tokenizer\.json is not a tokenizer\.json"):
        Vocabulary.from_tokenizer(file)
    with pytest.raises(VocabularyError, match=r"absent\.json is not a tokenizer\.json"):
        Vocabulary.from_tokenizer(tmp_path / "absent.json")


def test_an_eos_that_is_no_token_is_named(byte_tokenizer: Tokenizer) -> None:
    with pytest.raises(VocabularyError, match="'<eos>' is not in the vocabulary of 557 tokens"):
        Vocabulary.from_tokenizer(byte_tokenizer, eos=["<eos>"])
    with pytest.raises(VocabularyError, match="9999 is not in the vocabulary"):
        Vocabulary.from_tokenizer(byte_tokenizer, eos=[9999])


def test_a_tokenizer_without_bytes_is_refused() -> None:
    with pytest.raises(VocabularyError, match=r"WordPiece.*neither byte-level nor has it byte fallback"):
        Vocabulary.from_tokenizer(Tokenizer(WordPiece({"a": 0}, unk_token="a")))


def test_a_tokenizer_that_marks_word_parts_is_refused() -> None:
    tokenizer = Tokenizer(BPE(end_of_word_suffix="</w>"))
    tokenizer.decoder = decoders.ByteLevel()
    with pytest.raises(VocabularyError, match="end_of_word_suffix"):
        Vocabulary.from_tokenizer(tokenizer)


def test_a_token_outside_the_byte_level_alphabet_is_named() -> None:
    tokenizer = Tokenizer(BPE(vocab={"a": 0, "b c": 1}, merges=[]))
    tokenizer.decoder = decoders.ByteLevel()
    with pytest.raises(VocabularyError, match=r"token 1 \('b c'\) is not spelled in the byte-level alphabet"):
        Vocabulary.from_tokenizer(tokenizer)


def test_missing_bytes_are_named() -> None:
    alphabet = [char for char in sorted(pre_tokenizers.ByteLevel.alphabet()) if char not in "{}"]
    tokenizer = Tokenizer(BPE(vocab={char: i for i, char in enumerate(alphabet)}, merges=[]))
    tokenizer.decoder = decoders.ByteLevel()
    with pytest.raises(VocabularyError, match="no token for the bytes 0x7B, 0x7D"):
        Vocabulary.from_tokenizer(tokenizer)


def test_logits_narrower_than_the_tokens_are_refused() -> None:
    with pytest.raises(VocabularyError, match="2 tokens do not fit into logits of width 1"):
        Vocabulary(tokens=(b"a", b"b"), special={}, eos_ids=frozenset(), width=1)


@pytest.mark.parametrize(
    ("special", "eos"), [({"<end>": 2}, ()), ({"<end>": -1}, ()), ({}, (2,)), ({}, (-1,))]
)
def test_markers_and_ends_that_the_logits_lack_are_refused(
    special: dict[str, int], eos: tuple[int, ...]
) -> None:
    with pytest.raises(VocabularyError, match="is not in logits of width 2"):
        Vocabulary(tokens=(b"a", b"b"), special=special, eos_ids=frozenset(eos), width=2)
