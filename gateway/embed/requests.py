"""One request to an embedder: made fit, traced, counted, checked."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.embed.batches import fit
from gateway.embed.protocol import Embedded, Embedder, Role
from gateway.errors import EmbeddingError
from gateway.runtime.telemetry import Telemetry
from gateway.runtime.telemetry_names import Attributes
from gateway.runtime.vectors import unit_rows, usable


async def request(
    embedder: Embedder,
    texts: Sequence[str],
    *,
    role: Role,
    telemetry: Telemetry,
    dimensions: int | None = None,
) -> Embedded:
    """Embed *texts* in one request and give unit rows.

    Args:
        embedder: Embeds them.
        texts: At most ``limits.max_texts``; cut to ``limits.max_chars`` each.
        role: Whether they are documents or a query.
        telemetry: Where the span, the duration and the tokens go.
        dimensions: How long each vector must be; None if that is not known yet.

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
        found = await embedder.embed([fit(text, info.limits) for text in texts], role=role)
        fault = usable(
            found.vectors, count=len(texts), dimensions=dimensions or info.dimensions or None
        )
        if fault:
            raise EmbeddingError(f"embedder {info.model_id!r}: {fault}")
        span.set_attribute("gen_ai.embeddings.dimension.count", found.vectors.shape[1])
        if found.tokens is not None:
            span.set_attribute("gen_ai.usage.input_tokens", found.tokens)
            usage = {**labels, "gen_ai.token.type": "input"}
            telemetry.record("gen_ai.client.token.usage", found.tokens, usage)
    return Embedded(vectors=unit_rows(found.vectors), tokens=found.tokens)
