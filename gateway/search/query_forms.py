"""The forms of a query that plugins give."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from gateway.index.eligibility import Mask
from graphs.lexical.bm25_index import BM25Index


@dataclass(frozen=True, slots=True, kw_only=True)
class Correction:
    """A query with its spelling corrected."""

    text: str
    """The query itself if nothing was to be corrected."""
    changed: tuple[tuple[str, str], ...] = ()
    """The words that were changed, each with the word that replaces it, in order."""

    @property
    def summary(self) -> str:
        """The changes, in one line."""
        return ", ".join(f"{before} → {after}" for before, after in self.changed)


class Correct(Protocol):
    """Corrects the spelling of queries."""

    def __call__(self, index: BM25Index, query: str, mask: Mask | None = None) -> Correction:
        """Correct *query* to the words of *index*. Never raises.

        Args:
            index: The words of the catalog.
            query: The query as it was typed.
            mask: The eligible entities: a word that only other entities hold must not be in the
                answer. None is all.
        """
