"""The format of the embeddings endpoint: requests checked, vectors written out."""

from __future__ import annotations

import base64

import numpy as np

from gateway.embed.protocol import Embedded, EmbedderInfo
from gateway.errors import InvalidRequestError
from gateway.runtime.vectors import unit_rows
from gateway.types import JsonObject


def checked_texts(body: JsonObject, info: EmbedderInfo) -> tuple[str, ...]:
    """Return the texts of a request, checked as the real service does.

    Raises:
        InvalidRequestError: No text, an empty one, too many, or dimensions out of range.
    """
    dimensions, longest = body.get("dimensions", 1), info.dimensions or 1
    if not isinstance(dimensions, int) or not 1 <= dimensions <= longest:
        raise InvalidRequestError(f"'dimensions' must be between 1 and {longest}")
    value = body.get("input")
    items = value if isinstance(value, list) else [value]
    texts = tuple(item for item in items if isinstance(item, str) and item)
    if not texts or len(texts) != len(items):
        raise InvalidRequestError("'input' must be a text or a list of texts, none of them empty")
    if len(texts) > info.limits.max_texts:
        limit = info.limits.max_texts
        raise InvalidRequestError(f"'input' may hold {limit} texts, not {len(texts)}")
    return texts


def answer(body: JsonObject, embedded: Embedded) -> dict[str, object]:
    """Write the vectors as the request *body* wants them."""
    rows, dimensions = embedded.vectors, body.get("dimensions")
    if isinstance(dimensions, int):
        # The rest is laid over the beginning: a cut of what is sparse could leave zeros alone.
        padded = np.pad(rows, ((0, 0), (0, -rows.shape[1] % dimensions)))
        rows = unit_rows(padded.reshape(len(rows), -1, dimensions).sum(axis=1))
    packed = (base64.b64encode(row.astype("<f4").tobytes()).decode() for row in rows)
    vectors = packed if body.get("encoding_format") == "base64" else rows.tolist()
    return {
        "object": "list",
        "data": [
            {"object": "embedding", "index": index, "embedding": vector}
            for index, vector in enumerate(vectors)
        ],
        "model": body.get("model", ""),
        "usage": {"prompt_tokens": embedded.tokens, "total_tokens": embedded.tokens},
    }
