"""An embedder without a model, and the JSON format of the embeddings endpoint.

Words and their letter trigrams are hashed into a unit vector, the same in every process. Texts with
common words or parts of words are similar.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import json
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from gateway.embed.protocol import Embedded, EmbedderInfo, Role
from gateway.errors import ConfigError, InvalidRequestError
from gateway.runtime.text import estimate_tokens
from gateway.runtime.vectors import Matrix, Vector, unit_rows
from gateway.types import JsonObject

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_WORD = re.compile(r"[^\W_]+")
_FULL_WEIGHT_CHARS = 5
"""Minimum length of words with full weight. Shorter words are mostly grammar."""


class HashingEmbedder:
    """A deterministic embedder for tests and demos. Any task and any thread may use it."""

    def __init__(
        self,
        dimensions: int = 256,
        *,
        model_id: str = "",
        meanings: Mapping[str, str] | None = None,
        fail_with: BaseException | None = None,
        transform: Callable[[Matrix], Matrix] | None = None,
    ) -> None:
        """Create an embedder.

        Args:
            dimensions: Length of a vector.
            model_id: Name of the model; "" builds a name from *dimensions* and *meanings*.
            meanings: Replacements, keyed by word or phrase, compared without case. Whole words are
                matched; in scripts without case (Chinese, Arabic, …) any part of a text.
            fail_with: Error that `embed` raises while it is set.
            transform: Changes the returned vectors, to spoil them.
        """
        if dimensions < 1:
            raise ConfigError(f"dimensions must be at least 1, not {dimensions!r}")
        self.fail_with = fail_with
        self.transform = transform
        self._meanings = {_fold(word): _fold(meant) for word, meant in (meanings or {}).items()}
        self._synonyms = _pattern(self._meanings)
        self.batches: list[tuple[str, ...]] = []
        """Texts of each request, in the order of arrival."""
        name = f"hashing-{dimensions}"
        if meanings:
            serialized = json.dumps(self._meanings, sort_keys=True).encode()
            name += f"-{hashlib.blake2b(serialized, digest_size=4).hexdigest()}"
        self.info = EmbedderInfo(
            model_id=model_id or name, provider="testing", dimensions=dimensions
        )

    @property
    def calls(self) -> int:
        """Number of requests, including failed ones."""
        return len(self.batches)

    @property
    def texts(self) -> int:
        """Number of texts in all requests, including repeated ones."""
        return sum(map(len, self.batches))

    async def embed(self, texts: Sequence[str], *, role: Role) -> Embedded:
        """Return the vectors of *texts*. The role has no effect."""
        del role
        self.batches.append(tuple(texts))
        if self.fail_with is not None:
            raise self.fail_with
        vectors = self.vectors(texts)
        spoilt = self.transform(vectors) if self.transform is not None else vectors
        return Embedded(vectors=spoilt, tokens=sum(map(estimate_tokens, texts)))

    def vectors(self, texts: Sequence[str]) -> Matrix:
        """Compute the vectors without counting, failing or transforming."""
        dimensions = self.info.dimensions or 1
        rows = np.zeros((len(texts), dimensions), dtype=np.float32)
        for position, text in enumerate(texts):
            rows[position] = sum(_word_vector(word, dimensions) for word in self._words(text))
        return unit_rows(rows) if texts else rows

    def _words(self, text: str) -> list[str]:
        plain = _fold(text)
        if self._synonyms is not None:
            plain = self._synonyms.sub(lambda found: f" {self._meanings[found.group()]} ", plain)
        # No vector may be zero, even for a text without words.
        return sorted(set(_WORD.findall(plain))) or [text]


@functools.lru_cache(maxsize=65_536)
def _word_vector(word: str, dimensions: int) -> Vector:
    vector = np.zeros(dimensions, dtype=np.float32)
    weight = min(len(word) or 1, _FULL_WEIGHT_CHARS) / _FULL_WEIGHT_CHARS
    _add(vector, f"w:{word}", weight)
    framed = f" {word} "
    trigrams = [framed[start : start + 3] for start in range(len(framed) - 2)]
    for trigram in trigrams:
        # All trigrams together weigh as much as the word.
        _add(vector, f"t:{trigram}", weight / len(trigrams) ** 0.5)
    return vector


def _add(vector: Vector, feature: str, weight: float) -> None:
    digest = hashlib.blake2b(feature.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    number = int.from_bytes(digest, "big")
    # The sign is the lowest bit, so that collisions cancel out.
    vector[(number >> 1) % vector.shape[0]] += weight if number & 1 else -weight


def _fold(text: str) -> str:
    spaced = _HUMP.sub(" ", unicodedata.normalize("NFKC", text)).replace("_", " ")
    return spaced.casefold().strip()


def _pattern(meanings: Mapping[str, str]) -> re.Pattern[str] | None:
    choices = []
    for word in sorted(meanings, key=len, reverse=True):
        is_caseless = any(unicodedata.category(char) == "Lo" for char in word)
        choices.append(re.escape(word) if is_caseless else rf"(?<!\w){re.escape(word)}(?!\w)")
    return re.compile("|".join(choices)) if choices else None


def checked_texts(body: JsonObject, info: EmbedderInfo) -> tuple[str, ...]:
    """Return the texts of a request after the checks of the real service.

    Raises:
        InvalidRequestError: If there are no texts, empty texts or too many texts, or ``dimensions``
            is out of range.
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


def embeddings_answer(body: JsonObject, embedded: Embedded) -> dict[str, object]:
    """Return the vectors in the format that *body* asks for."""
    rows, dimensions = embedded.vectors, body.get("dimensions")
    if isinstance(dimensions, int):
        # A truncated sparse vector could be zero.
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
