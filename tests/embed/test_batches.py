"""Texts -> requests that an embedder accepts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gateway.embed.batches import BLANK, batches, fit
from gateway.embed.protocol import EmbeddingLimits

texts = st.lists(st.text(max_size=12), max_size=30)
limits = st.builds(
    EmbeddingLimits,
    max_texts=st.integers(1, 8),
    max_chars=st.integers(1, 20),
    max_request_chars=st.integers(1, 40),
)


@given(texts, limits)
def test_batches_cover_each_text_once_in_order(texts: list[str], limits: EmbeddingLimits) -> None:
    """A text that is left out would have no vector."""
    spots = [spot for batch in batches(texts, limits) for spot in batch]

    assert list(range(len(texts))) == spots


@given(texts, limits)
def test_batches_keep_to_the_limits(texts: list[str], limits: EmbeddingLimits) -> None:
    """A text that is too long by itself goes alone."""
    for batch in batches(texts, limits):
        size = sum(len(texts[spot]) for spot in batch)

        assert 1 <= len(batch) <= limits.max_texts
        assert size <= limits.max_request_chars or len(batch) == 1


@given(st.text(st.characters(), max_size=40), limits)
def test_a_fit_text_is_one_that_any_service_takes(text: str, limits: EmbeddingLimits) -> None:
    """Services refuse blank texts, NUL and halves of surrogate pairs."""
    found = fit(text, limits)

    assert found.strip()
    assert "\0" not in found
    assert len(found.encode()) >= len(found)
    assert len(found) <= max(limits.max_chars, len(BLANK))


def test_the_end_is_cut() -> None:
    """Names and purposes stand first."""
    assert "send" == fit("send email", EmbeddingLimits(max_chars=4))
