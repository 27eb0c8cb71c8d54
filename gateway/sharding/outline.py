"""What a coordinator knows of a catalog whose entities are elsewhere. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from itertools import chain
from typing import Self

import numpy as np

from gateway.index.eligibility import Eligibility, Mask
from gateway.index.snapshot import MIN_EMBEDDED_SHARE, Snapshot
from gateway.index.statistics import CatalogStatistics
from gateway.sharding.part import MAX_SERVERS
from gateway.sharding.values import Overview
from graphs.lexical.analysis import Vocabulary
from graphs.lexical.bm25_index import BM25Index


@dataclass(frozen=True, kw_only=True, eq=False)
class CatalogOutline(Snapshot):
    """A snapshot without entities: the words of the whole catalog, and what filters leave of it."""

    overview: Overview = Overview()  # noqa: RUF009  (frozen)

    @classmethod
    def of(cls, whole: CatalogStatistics) -> Self:
        """Return the outline of the catalog that was counted."""
        return cls(
            version=0,
            entities=(),
            by_name={},
            eligibility=Eligibility.of((), ()),
            lexical=BM25Index.compile((), Vocabulary({"": 1.0}), whole.words),
            graph=None,
            vectors=None,
            server_ids=np.zeros(0, dtype=np.intp),
        )

    @property
    def dimensions(self) -> int | None:
        """How many numbers a vector has; None without any vector."""
        return self.overview.dimensions

    def ranks_by_vectors(self, mask: Mask | None = None) -> bool:
        """Return whether enough of the eligible entities have a vector."""
        del mask
        overview = self.overview
        enough = overview.embedded >= MIN_EMBEDDED_SHARE * overview.eligible
        return overview.dimensions is not None and enough


def total_overview(parts: Collection[Overview]) -> Overview:
    """Add up what filters leave of each part."""
    tags: Counter[str] = Counter()
    for part in parts:
        tags.update(part.tags)
    firsts = chain.from_iterable(part.first for part in parts)
    return Overview(
        size=sum(part.size for part in parts),
        eligible=sum(part.eligible for part in parts),
        visible=sum(part.visible for part in parts),
        embedded=sum(part.embedded for part in parts),
        dimensions=next((part.dimensions for part in parts if part.dimensions), None),
        has_graph=any(part.has_graph for part in parts),
        tags={tag: tags[tag] for tag in sorted(tags)},
        servers=tuple(sorted({name for part in parts for name in part.servers})[:MAX_SERVERS]),
        words=tuple({word for part in parts for word in part.words}),
        first=tuple(sorted(firsts, key=lambda match: (match.name.casefold(), match.id))),
        notes=tuple(dict.fromkeys(note for part in parts for note in part.notes)),
    )
