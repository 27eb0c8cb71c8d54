"""One search on its way: what it found so far, what failed, and where its time went."""

from __future__ import annotations

import time
from collections.abc import Awaitable
from dataclasses import KW_ONLY, field
from typing import TypeVar

import numpy as np

from gateway.errors import ClosedError, EmbeddingError, Failed
from gateway.search.eligible import Mask
from gateway.search.index.snapshot import Snapshot
from gateway.search.patience import patient
from gateway.search.usage.signals import NOTHING, Signals
from gateway.types import (
    Code,
    Counts,
    Diagnostic,
    Match,
    RankingMode,
    SearchRequest,
    SearchResult,
    Stage,
)
from gateway.values import dataclass

T = TypeVar("T")


@dataclass(slots=True)
class Run:
    """One search on its way."""

    patience: float
    """Seconds that it waits for what it can do without, in each stage."""
    _: KW_ONLY
    snapshot: Snapshot
    request: SearchRequest
    mask: Mask
    notes: list[Diagnostic]
    use: Signals = NOTHING
    """What calls say."""
    seconds: dict[str, float] = field(default_factory=dict)
    told_at: float = field(default_factory=time.perf_counter)
    texts: int = 0
    tokens: int = 0
    eligible: int = field(init=False)
    """How many entities may be found."""

    def __post_init__(self) -> None:
        self.eligible = int(np.count_nonzero(self.mask))

    def spent(self, stage: Stage) -> None:
        """Say that all since the last time went into *stage*."""
        now = time.perf_counter()
        self.seconds[stage] = self.seconds.get(stage, 0.0) + now - self.told_at
        self.told_at = now

    @property
    def everybody(self) -> bool:
        """Whether nobody is filtered out."""
        return self.eligible == len(self.mask)

    def result(self, mode: RankingMode, matches: tuple[Match, ...] = ()) -> SearchResult:
        """End it without a ranking."""
        return SearchResult(
            matches=matches,
            mode=mode,
            diagnostics=tuple(self.notes),
            counts=Counts(eligible=self.eligible),
            normalized=self.request.queries,
            stages=self.seconds,
        )

    def note(self, stage: Stage, code: Code, detail: str = "") -> None:
        """Leave a diagnostic."""
        self.notes.append(Diagnostic(stage=stage, code=code, detail=detail))

    async def optional(self, stage: Stage, code: Code, work: Awaitable[T]) -> T | None:
        """Await a stage that the search can do without, no longer than its patience lasts.

        What comes again in one search, as the rewriting of each of several queries, shares it.

        Raises:
            ClosedError: The gateway was closed meanwhile: no stage will come back.
        """
        answer = await patient(work, self.patience, spent=self.seconds.get(stage, 0.0))
        self.spent(stage)
        if isinstance(answer, Failed):
            if isinstance(answer.error, ClosedError):
                raise answer.error
            unusable = isinstance(answer.error, EmbeddingError)
            self.note(stage, "query_vector_unusable" if unusable else code, answer.reason)
            return None
        return answer
