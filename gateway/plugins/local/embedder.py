"""Embedder that combines up to three packaged sentence encoders.

* A vector is the concatenation of the encoders' vectors, each minus the encoder's mean over
  unrelated texts.
* The first and the second encoder are multilingual and have equal shares, but the first has less
  for languages that it does not know. The third knows English: its share is a quarter for English
  texts and zero for others.
* The second encoder subtracts from a query the mean of the query's language instead, see
  `gateway.plugins.local.languages`.
* Unless all three encoders are installed, only the first is used, under another model id.
* A pass runs on one thread, because threads that wait for each other are a hundred times slower.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Generic, TypeVar
from weakref import WeakSet

import numpy as np

from gateway.embed.protocol import Embedded, EmbedderInfo, EmbeddingLimits, Role
from gateway.errors import ConfigError, EmbeddingError, GatewayError, MissingExtraError
from gateway.plugins.local.batcher import DynamicBatcher
from gateway.plugins.local.ctranslate2_encoder import MAX_CONCURRENT
from gateway.plugins.local.encoders import (
    ALL_MODELS,
    E5,
    USE,
    EncoderModel,
    MiniLMEncoder,
    UseEncoder,
    is_available,
    verify_files,
)
from gateway.plugins.local.languages import LanguageMeans, use_confidence
from gateway.runtime.cache import Clock
from gateway.runtime.vectors import Matrix, unit_rows

T = TypeVar("T")
MEANS_FILE = Path(__file__).with_name("means.npz")
"""Mean vectors of each encoder over ``benchmarks/background.txt``, keyed by encoder id, and of the
second encoder over each language of ``benchmarks/languages.txt``, keyed by language code."""
ENGLISH_SHARE = 0.25
"""Share of the third encoder in the cosine of an English text."""
RETRY_S = 30.0
"""Seconds after which a failed load is tried again. Equal to `UpstreamOptions.retry_after_s`, so
that a retried index build finds the loader ready."""
_MAX_TEXTS = 32
"""Maximum number of texts in one call of `embed`. More would only need more memory."""


class LocalEmbedder:
    """Embeds texts on this machine, without an API key or network access.

    The first use loads the encoders. If that fails, each use raises the same error for half a
    minute. A forked child process loads its own encoders.

    Args:
        models: Encoders to use; None is all if all are available, else the first.
        clock: Monotonic clock in seconds.

    Raises:
        ConfigError: At construction, if several encoders are not the first packaged ones, in order.
        MissingExtraError: At construction, if an encoder is not installed.
        ModelFileError: At the first use, if a file differs from the reviewed one.
        EmbeddingError: At the first use, if an encoder cannot be loaded, as on a full disk.

    Example:
        >>> embedder = LocalEmbedder()
        >>> embedded = await embedder.embed(["Send an e-mail."], role="query")
        >>> embedded.vectors.shape
        (1, 1280)
    """

    def __init__(
        self, models: Sequence[EncoderModel] | None = None, *, clock: Clock = time.monotonic
    ) -> None:
        all_run = all(map(is_available, ALL_MODELS))
        self._models = tuple(models or (ALL_MODELS if all_run else (USE,)))
        ids = [model.id for model in self._models]
        if len(ids) > 1 and ids != [model.id for model in ALL_MODELS[: len(ids)]]:
            raise ConfigError(
                f"the encoders must be the first packaged ones, in their order, got {ids}"
            )
        if any(model.find_folder() is None for model in self._models):
            raise MissingExtraError("the embedded model", "local")
        dimensions = sum(model.dimensions for model in self._models)
        model_id = f"{'+'.join(ids)}-{dimensions}{'c' if len(ids) > 1 else ''}"
        self._clock = clock
        self._batcher = self._new_batcher()
        _EMBEDDERS.add(self)
        self._info = EmbedderInfo(
            model_id=model_id,
            provider="local",
            dimensions=dimensions,
            limits=EmbeddingLimits(max_texts=_MAX_TEXTS, max_chars=4000, max_request_chars=64_000),
        )

    @property
    def info(self) -> EmbedderInfo:
        """Model id, dimensions and limits."""
        return self._info

    @property
    def preparing(self) -> bool:
        """True until the encoders are loaded or loading has failed."""
        return self._loader.is_pending

    async def prepare(self) -> None:
        """Convert and load the encoders before their first use.

        Raises:
            ModelFileError: If a file differs from the reviewed one.
            EmbeddingError: If an encoder cannot be loaded.
        """
        await asyncio.to_thread(self._loader)

    async def embed(self, texts: Sequence[str], *, role: Role) -> Embedded:
        """Embed *texts* in the worker threads. Queries precede documents.

        Vectors of the two roles differ, because a query is centred on the mean of its language.
        """
        # The encoders accept only valid UTF-8 without NUL characters.
        clean = [text.replace("\0", " ").encode("utf-8", "replace").decode() for text in texts]
        rows = self._batcher.submit(clean, role)
        try:
            vectors = await asyncio.gather(*map(asyncio.wrap_future, rows))
        finally:
            for row in rows:
                row.cancel()
        # Counting splits the texts again.
        tokens = await asyncio.to_thread(self._loader().count_tokens, clean)
        return Embedded(vectors=np.array(vectors, dtype=np.float32), tokens=tokens)

    def restart(self) -> DynamicBatcher:
        """Replace the worker threads and the encoders. Return the old batcher."""
        previous, self._batcher = self._batcher, self._new_batcher()
        return previous

    def _new_batcher(self) -> DynamicBatcher:
        models = self._models
        loader = self._loader = RetryingLoader(lambda: _LoadedEncoders(models), clock=self._clock)

        def encode(texts: list[str], role: Role) -> Matrix:
            return loader()(texts, role)

        return DynamicBatcher(encode, workers=MAX_CONCURRENT)


class _LoadedEncoders:
    def __init__(self, models: Sequence[EncoderModel]) -> None:
        self._models = models
        self._encoders = [model.load(partial(verify_files, model)) for model in models]
        with np.load(MEANS_FILE, allow_pickle=False) as archive:
            means = dict(archive)
        self._means = {model.id: means.pop(model.id) for model in ALL_MODELS}
        self._languages = LanguageMeans(means)

    def __call__(self, texts: list[str], role: Role) -> Matrix:
        """Return one vector row for each text."""
        parts = {
            model.id: encode([text[: model.max_chars] for text in texts])
            for model, encode in zip(self._models, self._encoders, strict=True)
        }
        if len(parts) == 1:
            return next(iter(parts.values()))
        centred = {key: part - self._means[key] for key, part in parts.items()}
        languages = [""] * len(texts)
        if role == "query":
            centred[E5.id], languages = self._languages.centre(parts[E5.id])
        shares = list(map(self._shares, texts, languages))
        return concatenate(list(centred.values()), np.array(shares, np.float32))

    def count_tokens(self, texts: Sequence[str]) -> int | None:
        """Return the first encoder's number of tokens of *texts*; None if it cannot count."""
        first, limit = self._encoders[0], self._models[0].max_chars
        if not isinstance(first, UseEncoder):
            return None
        return first.count_tokens([text[:limit] for text in texts])

    def _shares(self, text: str, language: str) -> tuple[float, ...]:
        english, last = None, self._encoders[-1]
        if isinstance(last, MiniLMEncoder):
            english = last.tokenize.english_confidence(text[: self._models[-1].max_chars])
        return encoder_shares(max(use_confidence(text, language), english or 0.0), english)


class RetryingLoader(Generic[T]):
    """Loads an object at the first use. A failure is raised again for `RETRY_S` seconds.

    Args:
        load: Function that loads the object. It may take seconds and may fail.
        clock: Monotonic clock in seconds.
    """

    def __init__(self, load: Callable[[], T], *, clock: Clock) -> None:
        self._load = load
        self._clock = clock
        self._lock = threading.Lock()
        self._loaded: T | None = None
        self._failure: tuple[GatewayError, float] | None = None
        """Error of the last load, and time of the next attempt."""

    @property
    def is_pending(self) -> bool:
        """True until loading has succeeded or failed."""
        return self._loaded is None and self._failure is None

    def __call__(self) -> T:
        """Return the loaded object, waiting while it is loaded.

        Raises:
            EmbeddingError: If loading failed. Errors of the gateway are raised unchanged.
        """
        with self._lock:
            if self._failure is not None and self._clock() < self._failure[1]:
                raise self._failure[0].with_traceback(None)
            if self._loaded is None:
                try:
                    self._loaded = self._load()
                except GatewayError as error:
                    self._failure = error, self._clock() + RETRY_S
                    raise
                except (OSError, RuntimeError, ValueError, ImportError, MemoryError) as error:
                    reason = f"{type(error).__name__}: {error}".removesuffix(": ")
                    failure = EmbeddingError(
                        f"the embedded model cannot be loaded ({reason}): free disk space and "
                        "memory. gateway doctor shows the folder of its files, GATEWAY_ENCODER_DIR "
                        f"sets another one. The next attempt is after {RETRY_S:.0f} s"
                    )
                    self._failure = failure, self._clock() + RETRY_S
                    raise failure from error
            return self._loaded


def concatenate(parts: Sequence[Matrix], shares: Matrix) -> Matrix:
    """Join the vectors of several encoders to unit rows, shape (n, d_1 + d_2 + …).

    Args:
        parts: Centred vectors of each encoder, shape (n, d_i).
        shares: Shares of the encoders in a cosine, shape (n, number of encoders). Rows sum to 1.
    """
    weighted = [
        np.sqrt(share)[:, None] * unit_rows(part)
        for part, share in zip(parts, shares.T, strict=True)
    ]
    return np.asarray(np.concatenate(weighted, axis=1), dtype=np.float32)


def encoder_shares(readable: float, english: float | None) -> tuple[float, ...]:
    """Return the share of each encoder in the cosines of one text, with sum 1.

    Args:
        readable: Confidence that the first encoder understands the text, 0 to 1. At 1, the first
            and the second encoder have equal shares.
        english: Confidence that the text is English, 0 to 1; None without a third encoder.
    """
    third = ENGLISH_SHARE * (english or 0.0)
    first = (1.0 - third) * readable / 2
    shares = (first, 1.0 - third - first, third)
    return shares[:2] if english is None else shares


_EMBEDDERS: WeakSet[LocalEmbedder] = WeakSet()


def _restart_after_fork() -> None:
    """Restart all embedders in a forked child, which lacks the parent's threads.

    Deleting the old engine would wait for its threads forever, so the child keeps it.
    """
    import ctypes  # noqa: PLC0415  (only a child needs it)

    keep_forever: Callable[[object], None] = ctypes.pythonapi.Py_IncRef
    for embedder in tuple(_EMBEDDERS):
        keep_forever(ctypes.py_object(embedder.restart()))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_restart_after_fork)
