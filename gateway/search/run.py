"""One search on its way: what it found so far, what failed, and where its time went."""

from __future__ import annotations

import time
from collections.abc import Awaitable
from dataclasses import KW_ONLY, dataclass, field
from typing import TypeVar

import numpy as np

from gateway.errors import ClosedError, EmbeddingError, Failed
from gateway.index.eligibility import Mask
from gateway.index.snapshot import Snapshot
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

T = TypeVar("T")


@dataclass(slots=True)
class Run:
    """One search on its way."""

    patience: float
    """Seconds that it waits, in each stage, for what it can do without."""
    _: KW_ONLY
    snapshot: Snapshot
    request: SearchRequest
    mask: Mask
    """Who may be found, shape (n,)."""
    notes: list[Diagnostic]
    """What is amiss, in the order in which it was noticed; grows."""
    use: Signals = NOTHING
    """What past calls say of tools."""
    seconds: dict[str, float] = field(default_factory=dict)
    """Spent so far, by stage."""
    counted_at: float = field(default_factory=time.perf_counter)
    """When seconds were last given to a stage."""
    texts: int = 0
    """How many texts were embedded for it."""
    tokens: int = 0
    """What those cost, if the embedder tells."""
    eligible: int = field(init=False)
    """How many entities may be found."""

    def __post_init__(self) -> None:
        self.eligible = int(np.count_nonzero(self.mask))

    def spent(self, stage: Stage) -> None:
        """Give *stage* the time since the last call."""
        now = time.perf_counter()
        self.seconds[stage] = self.seconds.get(stage, 0.0) + now - self.counted_at
        self.counted_at = now

    @property
    def everybody(self) -> bool:
        """Whether every entity may be found."""
        return self.eligible == len(self.mask)

    def result(self, mode: RankingMode, matches: tuple[Match, ...] = ()) -> SearchResult:
        """Give the result of a search that ranks nothing."""
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
        """Await *work* of a stage that the search can do without, as long as its patience lasts.

        Patience is a stage's: the rewritings of several queries share it.

        Returns:
            None if the stage failed or took too long; *code*, or ``query_vector_unusable``, is then
            noted with the reason.

        Raises:
            ClosedError: The gateway was closed meanwhile: every later stage would fail as well.
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
