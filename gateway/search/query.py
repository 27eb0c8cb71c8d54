"""One query through the pipeline: its texts, its vectors and its terms. Pure.

The forms of a query that plugins give.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Protocol

import numpy as np

from gateway.index.candidates import VectorQuery
from gateway.index.eligibility import Mask
from gateway.runtime.text import literals
from gateway.runtime.vectors import Vector
from gateway.search.rank import parameters
from graphs.lexical.analysis import Token, tokens
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


_STOPS = "!?;\n\u2022\u3002\uff01\uff1f\uff1b"
"""Ends of sentences and of list items, Chinese and Japanese ones too."""
_UNSPACED = "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]"
"""Letters of scripts without spaces: Thai, Lao, Burmese, Khmer, Japanese, Chinese."""
_CLAUSE_END = (
    # A full stop inside a number, a version, an address or a file name ends nothing.
    rf"[{_STOPS}]+\s*|\.++(?!\w)\s*|\s[-\u2013\u2014*]\s"
    r"|,\s+(?=(?:and|then|und|dann|et|puis|y|luego|e|poi)\s)"
    r"|\s+(?:and then|after that|and also|then)\s+"
)


_NO_VECTORS = VectorQuery(
    texts=np.zeros((0, 0), dtype=np.float32), clauses=np.zeros((0, 0), dtype=np.float32)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """One query in all its forms."""

    text: str
    """As the user wrote it; blank if there is only a context."""
    corrected: str = ""
    """With its spelling corrected; empty, or the text itself, if nothing was."""
    english: str = ""
    """Rewritten in English; empty, or the text itself, if it was not."""
    contradicts: bool = False
    """Whether the English form seems to say something else. It then ranks beside the original, by
    `REWRITE_SHARE`, instead of in its place."""
    context: str = ""
    """What the caller said besides; empty if nothing."""
    clauses: tuple[str, ...] = ()
    """The parts of a long request, as written and, where that differs, as corrected; empty for a
    short one."""
    clause_count: int = 0
    """How many parts there are, a corrected one counted once; 0 for a short request."""
    vectors: VectorQuery = _NO_VECTORS
    """The vectors of `texts` and `clauses`; without rows if they were not embedded."""
    _tokens: dict[str, Sequence[Token]] = field(default_factory=dict, compare=False, repr=False)

    @property
    def texts(self) -> tuple[str, ...]:
        """All forms with the context, as vectors and words see them; the graph's form last."""
        if not self.context:
            return self.forms
        return tuple(f"{form}. {self.context}" if form else self.context for form in self.forms)

    @property
    def texts_to_embed(self) -> tuple[str, ...]:
        """The texts and the clauses, possibly with repetitions."""
        return (*self.texts, *self.clauses)

    @property
    def graph_text(self) -> str:
        """The English form, else the corrected one, with the context."""
        return self.texts[-1]

    @property
    def confidence_texts(self) -> tuple[str, ...]:
        """What confidence is measured on: the query without its context, if there is one."""
        return self.forms if self.text else (self.context,)

    @property
    def normalized(self) -> str:
        """The English form, or the query itself."""
        return self.english or self.text

    @property
    def forms(self) -> tuple[str, ...]:
        """The original, the corrected and the English form, each once."""
        return tuple(dict.fromkeys((self.text, self.corrected or self.text, self.normalized)))

    def compare_words(self) -> Query:
        """Return the same query; it contradicts if too few words of its English form are its own.

        A literal is no word here: it was put back, whatever the form says.
        """
        if self.normalized == self.text:
            return self
        own = self._terms(self.text, self.corrected)
        words = self._terms(self.english) - self._terms(*literals(self.text))
        return replace(self, contradicts=len(words & own) <= parameters.SHARED_WORDS * len(words))

    def _terms(self, *texts: str) -> set[str]:
        found = chain.from_iterable(map(self.tokens, texts))
        return {part for token in found if not token.stop for part in token.parts}

    def split(self) -> Query:
        """Return the same query with its clauses, if it is a long request."""
        written, corrected = split_clauses(self.text), split_clauses(self.corrected)
        return replace(
            self,
            clauses=tuple(dict.fromkeys((*written, *corrected))),
            clause_count=max(len(written), len(corrected)),
        )

    @property
    def is_embedded(self) -> bool:
        """Whether it has its vectors."""
        return len(self.vectors.texts) > 0

    def with_vectors(self, rows: Mapping[str, Vector]) -> Query:
        """Return the same query with the unit vector of each of `texts_to_embed`, shape (d,)."""
        texts = np.array([rows[text] for text in self.texts])
        clauses = np.array([rows[text] for text in self.clauses]) if self.clauses else texts[:0]
        vectors = VectorQuery(
            texts=texts, clauses=clauses, clause_weight=parameters.CLAUSE_COSINE_WEIGHT
        )
        return replace(self, vectors=vectors)

    def without_vectors(self) -> Query:
        """Return the same query as words alone see it."""
        return replace(self, vectors=_NO_VECTORS)

    def tokens(self, text: str) -> Sequence[Token]:
        """Split one of the texts into tokens, once for all indexes that it is looked up in.

        Bare numbers are left out: they are arguments, and meet tools by chance.
        """
        if text not in self._tokens:
            every = tokens(text)
            words = [token for token in every if not token.surface.isdigit()]
            self._tokens[text] = words or every
        return self._tokens[text]


def split_clauses(text: str) -> tuple[str, ...]:
    """Split a long request into its parts; a short one, or one of a single part, has none."""
    if _count_words(text) <= parameters.LONG_REQUEST_WORDS:
        return ()
    parts = (part.strip(" \t,:-") for part in re.split(_CLAUSE_END, text, flags=re.IGNORECASE))
    clauses = [part for part in parts if _count_words(part) >= parameters.MIN_CLAUSE_WORDS]
    return tuple(dict.fromkeys(clauses))[: parameters.MAX_CLAUSES] if len(clauses) > 1 else ()


def _count_words(text: str) -> int:
    """Count words; where a script has no spaces, two letters are about one."""
    unspaced = 0 if text.isascii() else len(re.findall(_UNSPACED, text))
    rest = re.sub(_UNSPACED, " ", text) if unspaced else text
    return len(rest.split()) + unspaced // parameters.LETTERS_PER_WORD
