"""The third encoder: the pieces of BERT, English, and the file of its weights."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gateway.embed.local.encoders import MINILM, MiniLMEncoder
from gateway.embed.local.formats import read_onnx_tensors
from gateway.embed.local.tokenizers import WordPieceTokenizer
from gateway.errors import ModelFileError

START, END = 101, 102


@pytest.fixture(scope="session")
def encoder() -> MiniLMEncoder:
    folder = MINILM.find_folder()
    assert folder is not None
    return MiniLMEncoder(folder)


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
def test_texts_are_split_as_bert_splits_them(
    tokenize: WordPieceTokenizer, text: str, numbers: tuple[int, ...]
) -> None:
    """In lower case, without accents; no text can write a mark of the model."""
    assert [START, *numbers, END] == list(tokenize(text))


def test_long_texts_are_cut_where_the_model_ends(tokenize: WordPieceTokenizer) -> None:
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
def test_english_is_what_is_said_in_whole_words(
    tokenize: WordPieceTokenizer, text: str, english: float
) -> None:
    """Names and numbers do not make a text foreign, nor borrowed words English."""
    assert english == pytest.approx(tokenize.english_confidence(text), abs=0.2)


def test_a_vector_does_not_depend_on_its_company(encoder: MiniLMEncoder) -> None:
    """Queries that wait go together, and the same question must have the same answer."""
    asked = ["send it", "send a letter to my mother", "", "word " * 300, "send that"]

    for text, row in zip(asked, encoder(asked), strict=True):
        np.testing.assert_array_equal(encoder([text])[0], row)


def test_what_means_the_same_is_near(encoder: MiniLMEncoder) -> None:
    """Whatever words say it."""
    wish, same, other = encoder(["I need a doctor", "find a physician", "play some jazz"])

    assert float(wish @ same) > float(wish @ other) + 0.3


@pytest.mark.parametrize("content", [b"GGUF" + bytes(64), b"", b"\x0a\xff\xff"])
def test_another_file_is_refused(tmp_path: Path, content: bytes) -> None:
    """Before anything is made of it."""
    other = tmp_path / "other.onnx"
    other.write_bytes(content)

    with pytest.raises(ModelFileError, match="other"):
        read_onnx_tensors(other)
