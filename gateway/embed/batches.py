"""Texts -> requests that an embedder accepts. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gateway.embed.protocol import EmbeddingLimits

BLANK = "-"
"""What is sent for a blank text: services refuse the empty string."""


def fit(text: str, limits: EmbeddingLimits) -> str:
    """Make *text* one that any embedder takes: no lone surrogate, no NUL, not blank, not too long.

    The end is cut, since names and purposes stand first.
    """
    whole = text[: limits.max_chars].encode("utf-8", "replace").decode().replace("\x00", " ")
    return whole if whole.strip() else BLANK


def batches(texts: Sequence[str], limits: EmbeddingLimits) -> Iterator[range]:
    """Split the positions of *texts* into consecutive ranges within the *limits*."""
    start, size = 0, 0
    for position, text in enumerate(texts):
        full = position - start >= limits.max_texts or size + len(text) > limits.max_request_chars
        if full and position > start:
            yield range(start, position)
            start, size = position, 0
        size += len(text)
    if start < len(texts):
        yield range(start, len(texts))
