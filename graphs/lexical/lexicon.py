"""Texts taken apart once: which terms and spellings each of them holds.

A lexicon only grows while it is used; what no text holds any more is dropped when it is packed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from graphs.lexical.analysis import tokens

Phrase: TypeAlias = tuple[str, str]
"""A text and its BCP 47 language; empty if unknown."""
Fields: TypeAlias = Mapping[str, str | Sequence[Phrase]]
"""The texts of one document by field."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Read:
    """One text, taken apart."""

    terms: np.ndarray
    """Ids of its terms in order, with repetitions, int32."""
    spelt: np.ndarray
    """Ids of its spellings, int32."""


@dataclass(slots=True)
class Lexicon:
    """Ids of terms and spellings, and the texts that were read with them."""

    terms: dict[str, int] = field(default_factory=dict)
    """Id of each term."""
    spelt: dict[tuple[str, int], int] = field(default_factory=dict)
    """Id of each spelling and the term it stands for."""
    texts: dict[Phrase, Read] = field(default_factory=dict)
    """What has been read since the last `turn`, and in the turn before it."""
    kept: dict[Phrase, Read] = field(default_factory=dict)
    """What has been read since the last `turn`."""
    read_count: int = 0
    """How many texts were taken apart since the last `turn`."""

    def turn(self) -> None:
        """Begin a new build: what the last one did not read is forgotten."""
        self.texts, self.kept, self.read_count = self.kept, {}, 0

    def read(self, phrase: Phrase) -> Read:
        """Take a text apart, if that was not done before."""
        known = self.kept.get(phrase) or self.texts.get(phrase)
        if known is None:
            known = self._read(*phrase)
            self.read_count += 1
        self.kept[phrase] = known
        return known

    def _read(self, text: str, language: str) -> Read:
        terms, spelt = self.terms, self.spelt
        rows: list[int] = []
        spellings: list[int] = []
        for token in tokens(text, language=language):
            parts = [terms.setdefault(term, len(terms)) for term in token.parts]
            rows += parts
            rows += [terms.setdefault(term, len(terms)) for term in token.wholes]
            spellings += [
                spelt.setdefault(pair, len(spelt)) for pair in zip(token.spelt, parts, strict=True)
            ]
        return Read(
            terms=np.asarray(rows, dtype=np.int32), spelt=np.asarray(spellings, dtype=np.int32)
        )

    def packed(
        self, read: Sequence[Read]
    ) -> tuple[tuple[str, ...], np.ndarray, list[tuple[str, int]], np.ndarray]:
        """Give what *read* holds, without the terms that it does not.

        Returns:
            The terms; the words as rows of them, int64; each spelling with the row of its term;
            how often each of those is written, int64.
        """
        nothing = np.zeros(0, dtype=np.int32)
        words = np.concatenate([nothing, *(text.terms for text in read)])
        known = list(self.terms)
        used = np.unique(words)
        rows = np.zeros(len(known), dtype=np.int64)
        rows[used] = np.arange(len(used))
        spellings = list(self.spelt)
        written = np.concatenate([nothing, *(text.spelt for text in read)])
        in_use, uses = np.unique(written, return_counts=True)
        spelt = [(spellings[at][0], int(rows[spellings[at][1]])) for at in in_use.tolist()]
        return tuple(known[at] for at in used.tolist()), rows[words], spelt, uses


def phrases(value: str | Sequence[Phrase]) -> Sequence[Phrase]:
    """Give the phrases of a field; a bare text is one in no language."""
    if not isinstance(value, str):
        return value
    return ((value, ""),) if value else ()
