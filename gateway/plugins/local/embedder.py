"""The embedded multilingual model: one vector out of three sentence encoders, or of one.

* Where all three run, a vector is theirs side by side, each centred on its mean over unrelated
  texts: what one does not know, another may. Two read many languages and have equal shares. The
  third reads English: it has a quarter of an English text and nothing of others. In a language that
  the first cannot read, its share shrinks.
* The second encoder's vector of a query is centred on means of languages instead: see
  `gateway.plugins.local.languages`.
* Elsewhere the vector is the first encoder's alone, under another model id.
* A pass always runs on one thread: with more, the threads wait for each other and a query takes a
  hundred times as long. Two passes may run at once.
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
"""Each encoder's mean vector over the texts of ``benchmarks/background.txt``, keyed by its id; the
second encoder's mean vector over each language of ``benchmarks/languages.txt``, keyed by its code.
"""
ENGLISH_SHARE = 0.25
"""The third encoder's share of a cosine in a text that it can read."""
RETRY_S = 30.0
"""As long as `UpstreamOptions.retry_after_s`: an index build that is retried finds it retried."""
_MAX_TEXTS = 32
"""Texts of one request: more would only take memory."""


class LocalEmbedder:
    """Embeds on this machine, without a key or a network.

    The encoders load at the first use, once, whichever thread comes first. If they cannot, each use
    raises the same until it is tried again, half a minute later. A forked child loads its own.

    Args:
        models: Which encoders; None takes all of `gateway.plugins.local.encoders` where all run.
        clock: Seconds that only grow; it tells when a failed load is tried again.

    Raises:
        ConfigError: At construction, if several encoders are not the first of those, in order.
        MissingExtraError: At construction, if an encoder is not installed.
        ModelFileError: At the first use, if a file is not a reviewed one.
        EmbeddingError: At the first use, if an encoder cannot be loaded, as on a full disk.
    """

    def __init__(
        self, models: Sequence[EncoderModel] | None = None, *, clock: Clock = time.monotonic
    ) -> None:
        all_run = all(map(is_available, ALL_MODELS))
        self._models = tuple(models or (ALL_MODELS if all_run else (USE,)))
        ids = [model.id for model in self._models]
        if len(ids) > 1 and ids != [model.id for model in ALL_MODELS[: len(ids)]]:
            raise ConfigError(f"the encoders stand side by side in one order only, got {ids}")
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
        """The model's name and bounds."""
        return self._info

    @property
    def preparing(self) -> bool:
        """Whether the encoders are not loaded yet, and nothing says that they cannot be."""
        return self._loader.is_pending

    async def prepare(self) -> None:
        """Convert and load the encoders, as the first use does.

        Raises:
            ModelFileError: A file is not a reviewed one.
            EmbeddingError: An encoder cannot be loaded.
        """
        await asyncio.to_thread(self._loader)

    async def embed(self, texts: Sequence[str], *, role: Role) -> Embedded:
        """Embed *texts* in the worker threads; queries go first.

        A query is centred on its language's mean, see `gateway.plugins.local.languages`. So a text
        has a slightly different vector in each role.
        """
        # The engines read UTF-8 up to a NUL.
        clean = [text.replace("\0", " ").encode("utf-8", "replace").decode() for text in texts]
        rows = self._batcher.submit(clean, role)
        try:
            vectors = await asyncio.gather(*map(asyncio.wrap_future, rows))
        finally:
            for row in rows:
                row.cancel()
        # Not on the loop: they are split anew.
        tokens = await asyncio.to_thread(self._loader().count_tokens, clean)
        return Embedded(vectors=np.array(vectors, dtype=np.float32), tokens=tokens)

    def restart(self) -> DynamicBatcher:
        """Replace the workers and the encoders; return the old workers."""
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
        """Return one row for each text."""
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
        """Return the tokens of *texts* as the first encoder counts them; None if it does not."""
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
    """Loads the encoders at the first use, once; a failed load is not tried at every use.

    Args:
        load: May take seconds, and may fail.
        clock: Seconds that only grow.
    """

    def __init__(self, load: Callable[[], T], *, clock: Clock) -> None:
        self._load = load
        self._clock = clock
        self._lock = threading.Lock()
        self._loaded: T | None = None
        self._failure: tuple[GatewayError, float] | None = None
        """And when it is tried again."""

    @property
    def is_pending(self) -> bool:
        """Whether nothing is loaded, and no failure rests."""
        return self._loaded is None and self._failure is None

    def __call__(self) -> T:
        """Return what is loaded; callers wait while it loads.

        Raises:
            EmbeddingError: If it cannot be loaded; the same for `RETRY_S` seconds. Errors of the
                gateway stay what they are.
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
                        f"the embedded model cannot be loaded ({reason}): see that there is room "
                        "on the disk and in memory: gateway doctor says where its files are, "
                        "GATEWAY_ENCODER_DIR names another folder. It is tried again after "
                        f"{RETRY_S:.0f} s"
                    )
                    self._failure = failure, self._clock() + RETRY_S
                    raise failure from error
            return self._loaded


def concatenate(parts: Sequence[Matrix], shares: Matrix) -> Matrix:
    """Join the vectors of several encoders to unit rows, shape (n, d_1 + d_2 + …).

    Args:
        parts: Each encoder's vectors, centred, shape (n, d_i).
        shares: Each encoder's share of a cosine, shape (n, encoders), rows sum to 1.
    """
    weighted = [
        np.sqrt(share)[:, None] * unit_rows(part)
        for part, share in zip(parts, shares.T, strict=True)
    ]
    return np.asarray(np.concatenate(weighted, axis=1), dtype=np.float32)


def encoder_shares(readable: float, english: float | None) -> tuple[float, ...]:
    """Return each encoder's share of a text's cosines; they sum to 1.

    Args:
        readable: The first encoder's confidence in the text, 0 to 1: its share is that part of half
            of what the third leaves.
        english: The third encoder's confidence, 0 to 1; None if there is none.
    """
    third = ENGLISH_SHARE * (english or 0.0)
    first = (1.0 - third) * readable / 2
    shares = (first, 1.0 - third - first, third)
    return shares[:2] if english is None else shares


_EMBEDDERS: WeakSet[LocalEmbedder] = WeakSet()


def _restart_after_fork() -> None:
    """Restart every embedder in a forked child, which has none of its parent's threads.

    An engine whose threads are gone can neither work nor end, since its end waits for them: the
    child keeps it for as long as it lives.
    """
    import ctypes  # noqa: PLC0415  (only a child needs it)

    keep_forever: Callable[[object], None] = ctypes.pythonapi.Py_IncRef
    for embedder in tuple(_EMBEDDERS):
        keep_forever(ctypes.py_object(embedder.restart()))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_restart_after_fork)
