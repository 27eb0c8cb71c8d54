"""The embedder that a host names or brings, and requests to it.

Texts are made fit and split into requests, which are traced, counted and checked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from gateway.embed.protocol import Embedded, Embedder, EmbeddingLimits, Role
from gateway.errors import ConfigError, EmbeddingError
from gateway.options.validation import check_members
from gateway.runtime.telemetry import Attributes, Telemetry
from gateway.runtime.vectors import unit_rows, usable

BLANK = "-"
"""Sent for a blank text: services refuse the empty string."""


def resolve_embedder(embedder: Embedder | Literal["local"] | None) -> Embedder | None:
    """Return the embedder that a host names or brings.

    Raises:
        ConfigError: If it names another than ``local``, or is none.
        MissingExtraError: If the local one is not installed.
    """
    if isinstance(embedder, str):
        if embedder != "local":
            raise ConfigError(f"unknown embedder {embedder!r}; give 'local' or an Embedder")
        from gateway.embed.local.embedder import LocalEmbedder  # noqa: PLC0415  (only who embeds here pays for it)

        return LocalEmbedder()
    if embedder is not None:
        check_members("embedder", embedder, "'local' or an Embedder", "embed", "info")
    return embedder


def fit_text(text: str, limits: EmbeddingLimits) -> str:
    """Return *text* as any embedder takes it: no lone surrogate, no NUL, not blank, not too long.

    The end is cut, since names and purposes stand first.
    """
    clipped = text[: limits.max_chars].encode("utf-8", "replace").decode().replace("\x00", " ")
    return clipped if clipped.strip() else BLANK


def split_into_batches(texts: Sequence[str], limits: EmbeddingLimits) -> Iterator[range]:
    """Yield consecutive ranges of positions of *texts*, each within the *limits*."""
    start, size = 0, 0
    for position, text in enumerate(texts):
        full = position - start >= limits.max_texts or size + len(text) > limits.max_request_chars
        if full and position > start:
            yield range(start, position)
            start, size = position, 0
        size += len(text)
    if start < len(texts):
        yield range(start, len(texts))


async def request_vectors(
    embedder: Embedder,
    texts: Sequence[str],
    *,
    role: Role,
    telemetry: Telemetry,
    dimensions: int | None = None,
) -> Embedded:
    """Embed *texts* in one request and return unit rows.

    Args:
        embedder: The embedder.
        texts: At most ``limits.max_texts``; each is cut to ``limits.max_chars``.
        role: Whether they are documents or a query.
        telemetry: Records the span, the duration and the tokens.
        dimensions: The length that each vector must have; None if that is not known yet.

    Raises:
        EmbeddingError: The answer has another count or length, NaN, or a vector of zeros.
        Exception: Whatever the embedder raises.
    """
    info = embedder.info
    labels: dict[str, str | int | float | bool] = {
        "gen_ai.operation.name": "embeddings",
        "gen_ai.provider.name": info.provider,
    }
    attributes: Attributes = {
        "gen_ai.provider.name": info.provider,
        "gen_ai.request.model": info.model_id,
        "gateway.embedding.texts": len(texts),
    }
    with (
        telemetry.span("embeddings", info.model_id, attributes) as span,
        telemetry.timed("gen_ai.client.operation.duration", labels),
    ):
        answer = await embedder.embed([fit_text(text, info.limits) for text in texts], role=role)
        fault = usable(
            answer.vectors, count=len(texts), dimensions=dimensions or info.dimensions or None
        )
        if fault:
            raise EmbeddingError(f"embedder {info.model_id!r}: {fault}")
        span.set_attribute("gen_ai.embeddings.dimension.count", answer.vectors.shape[1])
        if answer.tokens is not None:
            span.set_attribute("gen_ai.usage.input_tokens", answer.tokens)
            usage = {**labels, "gen_ai.token.type": "input"}
            telemetry.record("gen_ai.client.token.usage", answer.tokens, usage)
    return Embedded(vectors=unit_rows(answer.vectors), tokens=answer.tokens)
