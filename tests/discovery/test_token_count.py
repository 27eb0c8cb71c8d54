"""Whose tokens are counted, and that nothing is fetched for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.discovery.token_count import has_vocabulary, token_counter
from gateway.options.environment import vocabulary_dir
from gateway.runtime.text import estimate_tokens


@pytest.mark.parametrize("model", ["gpt-4o", "a-model-that-nobody-knows", ""])
def test_without_a_vocabulary_on_disk_tokens_are_estimated(model: str) -> None:
    """tiktoken would fetch one over the network: it is not asked."""
    text = "Some words, and more of them."

    assert estimate_tokens(text) == token_counter(model, vocabulary_dir())(text)


def test_a_vocabulary_that_is_not_whole_is_none(tmp_path: Path) -> None:
    """tiktoken throws it away and fetches it anew."""
    (tmp_path / "fb374d419588a4632f3f557e76b4b70aebbca790").write_bytes(b"half")

    assert not has_vocabulary("o200k_base", tmp_path)
    assert not has_vocabulary("o200k_base", tmp_path / "nowhere")
    assert not has_vocabulary("another", tmp_path)
