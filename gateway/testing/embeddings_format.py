"""The format of the embeddings endpoint: requests checked, vectors written out."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from gateway.embed.protocol import EmbedderInfo
from gateway.errors import InvalidRequestError
from gateway.runtime.vectors import Matrix, Vector, unit_rows
from gateway.testing.endpoint import FaultKind
from gateway.types import JsonObject

FAULTY_VECTORS: Mapping[FaultKind, Callable[[Matrix], Matrix]] = {
    "nan": lambda rows: rows * np.float32("nan"),
    "zero": lambda rows: rows * np.float32(0),
    "short_batch": lambda rows: rows[:-1],
    "wrong_dimension": lambda rows: rows[:, :-1],
}
"""What each fault of vectors does to them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingRequest:
    """One checked request."""

    texts: tuple[str, ...]
    model: str
    dimensions: int
    base64: bool

    def to_response(self, rows: Matrix, *, tokens: int) -> dict[str, object]:
        """Write *rows*, the whole vectors of the texts, as the wire has them."""
        write = _as_base64 if self.base64 else _as_floats
        return {
            "object": "list",
            "data": [
                {"object": "embedding", "index": index, "embedding": write(row)}
                for index, row in enumerate(rows)
            ],
            "model": self.model,
            "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
        }

    def shorten(self, rows: Matrix) -> Matrix:
        """Shorten *rows* to the dimensions that were asked for, of unit length again.

        The rest is laid over the beginning: what is hashed is sparse, and a cut could leave
        nothing but zeros.
        """
        if rows.shape[1] == self.dimensions:
            return rows
        padded = np.pad(rows, ((0, 0), (0, -rows.shape[1] % self.dimensions)))
        return unit_rows(padded.reshape(len(rows), -1, self.dimensions).sum(axis=1))


def parse_request(body: JsonObject, info: EmbedderInfo) -> EmbeddingRequest:
    """Check a request as the real service does.

    Raises:
        InvalidRequestError: No text, an empty one, too many, or dimensions out of range.
    """
    max_dimensions = info.dimensions or 1
    dimensions = body.get("dimensions", max_dimensions)
    if not isinstance(dimensions, int) or not 1 <= dimensions <= max_dimensions:
        raise InvalidRequestError(f"'dimensions' must be between 1 and {max_dimensions}")
    return EmbeddingRequest(
        texts=_parse_texts(body.get("input"), info.limits.max_texts),
        model=str(body.get("model", "")),
        dimensions=dimensions,
        base64=body.get("encoding_format") == "base64",
    )


def _parse_texts(raw: object, max_texts: int) -> tuple[str, ...]:
    items = raw if isinstance(raw, list) else [raw]
    texts = tuple(item for item in items if isinstance(item, str) and item)
    if not texts or len(texts) != len(items):
        raise InvalidRequestError("'input' must be a text or a list of texts, none of them empty")
    if len(texts) > max_texts:
        raise InvalidRequestError(f"'input' may hold {max_texts} texts, not {len(texts)}")
    return texts


def _as_floats(row: Vector) -> list[float]:
    return [float(number) for number in row]


def _as_base64(row: Vector) -> str:
    return base64.b64encode(row.astype("<f4").tobytes()).decode()
