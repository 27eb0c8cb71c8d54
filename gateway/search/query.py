"""One query in the pipeline: its texts, vectors and tokens, and the spelling corrector. Pure."""

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
    """A query with corrected spelling."""

    text: str
    """The corrected query; the original if nothing was corrected."""
    changed: tuple[tuple[str, str], ...] = ()
    """Corrected words, as pairs of old and new word, in the order of the query."""

    @property
    def summary(self) -> str:
        """All corrections as one line of text."""
        return ", ".join(f"{before} → {after}" for before, after in self.changed)


class Correct(Protocol):
    """Corrects the spelling of queries."""

    def __call__(self, index: BM25Index, query: str, mask: Mask | None = None) -> Correction:
        """Correct *query* with the words of *index*. Never raises.

        Words that only ineligible entities have must not be used as corrections. If *mask* is None,
        all entities are eligible.
        """


_STOPS = "!?;\n\u2022\u3002\uff01\uff1f\uff1b"
"""Characters that end a sentence or list item, including Chinese and Japanese ones."""
_UNSPACED = "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]"
"""Letters of scripts without spaces: Thai, Lao, Burmese, Khmer, Japanese, Chinese."""
_CLAUSE_END = (
    # A full stop inside a number, version, address or file name does not end a clause.
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
    """The original query. Blank if the request has only a context."""
    corrected: str = ""
    """The query with corrected spelling. Empty or equal to `text` if nothing was corrected."""
    english: str = ""
    """The query rewritten in English. Empty or equal to `text` if not rewritten."""
    contradicts: bool = False
    """True if the English form seems to have another meaning than the original. It then counts by
    `REWRITE_SHARE` next to the original, instead of replacing it."""
    context: str = ""
    """Additional context from the caller; empty if missing."""
    clauses: tuple[str, ...] = ()
    """Clauses of the original and of the corrected query. Empty for a short query."""
    clause_count: int = 0
    """Number of clauses, where a clause and its corrected form count once. 0 for a short query."""
    vectors: VectorQuery = _NO_VECTORS
    """Vectors of `texts` and `clauses`; without rows if the query is not embedded."""
    _tokens: dict[str, Sequence[Token]] = field(default_factory=dict, compare=False, repr=False)

    @property
    def texts(self) -> tuple[str, ...]:
        """All forms of the query, each with the context."""
        if not self.context:
            return self.forms
        return tuple(f"{form}. {self.context}" if form else self.context for form in self.forms)

    @property
    def texts_to_embed(self) -> tuple[str, ...]:
        """All of `texts` and `clauses`, possibly with duplicates."""
        return (*self.texts, *self.clauses)

    @property
    def graph_text(self) -> str:
        """The last of `texts`: the English form if rewritten, with the context."""
        return self.texts[-1]

    @property
    def confidence_texts(self) -> tuple[str, ...]:
        """The forms without context, or the context alone if the query is blank."""
        return self.forms if self.text else (self.context,)

    @property
    def normalized(self) -> str:
        """The English form, or the original if not rewritten."""
        return self.english or self.text

    @property
    def forms(self) -> tuple[str, ...]:
        """The original, corrected and English forms, without duplicates."""
        return tuple(dict.fromkeys((self.text, self.corrected or self.text, self.normalized)))

    def compare_words(self) -> Query:
        """Return the query, with `contradicts` set if its English form shares few words with it.

        Literals do not count, because they are always copied into the English form.
        """
        if self.normalized == self.text:
            return self
        query_words = self._words_of(self.text, self.corrected)
        words = self._words_of(self.english) - self._words_of(*literals(self.text))
        return replace(
            self, contradicts=len(words & query_words) <= parameters.SHARED_WORDS * len(words)
        )

    def _words_of(self, *texts: str) -> set[str]:
        all_tokens = chain.from_iterable(map(self.tokens, texts))
        return {part for token in all_tokens if not token.stop for part in token.parts}

    def split(self) -> Query:
        """Return the query with its clauses, if it is long."""
        written, corrected = split_clauses(self.text), split_clauses(self.corrected)
        return replace(
            self,
            clauses=tuple(dict.fromkeys((*written, *corrected))),
            clause_count=max(len(written), len(corrected)),
        )

    @property
    def is_embedded(self) -> bool:
        """True if the query has vectors."""
        return len(self.vectors.texts) > 0

    def with_vectors(self, rows: Mapping[str, Vector]) -> Query:
        """Return the query with the vectors of its texts and clauses.

        *rows* are unit vectors of shape (d,), keyed by text, for all of `texts_to_embed`.
        """
        texts = np.array([rows[text] for text in self.texts])
        clauses = np.array([rows[text] for text in self.clauses]) if self.clauses else texts[:0]
        vectors = VectorQuery(
            texts=texts, clauses=clauses, clause_weight=parameters.CLAUSE_COSINE_WEIGHT
        )
        return replace(self, vectors=vectors)

    def without_vectors(self) -> Query:
        """Return the query without its vectors."""
        return replace(self, vectors=_NO_VECTORS)

    def tokens(self, text: str) -> Sequence[Token]:
        """Split *text*, one of this query's texts, into tokens. They are cached.

        Bare numbers are removed, because they are arguments and match tools by chance. If all words
        are numbers, they stay.
        """
        if text not in self._tokens:
            all_tokens = tokens(text)
            words = [token for token in all_tokens if not token.surface.isdigit()]
            self._tokens[text] = words or all_tokens
        return self._tokens[text]


def split_steps(query: Query, steps: Sequence[str]) -> list[Query]:
    """Return a query for each of *steps*, the English form of *query* in several lines.

    If a step seems to have another meaning than the query, the query itself is the last one.
    """
    queries = [Query(text=step, context=query.context) for step in steps]
    alone = replace(query, english=query.text, contradicts=False)
    compared = (replace(query, english=step).compare_words() for step in steps)
    return [*queries, alone] if any(form.contradicts for form in compared) else queries


def split_clauses(text: str) -> tuple[str, ...]:
    """Split a long request into its clauses. Return () for a short request or a single clause."""
    if _count_words(text) <= parameters.LONG_REQUEST_WORDS:
        return ()
    parts = (part.strip(" \t,:-") for part in re.split(_CLAUSE_END, text, flags=re.IGNORECASE))
    clauses = [part for part in parts if _count_words(part) >= parameters.MIN_CLAUSE_WORDS]
    return tuple(dict.fromkeys(clauses))[: parameters.MAX_CLAUSES] if len(clauses) > 1 else ()


def _count_words(text: str) -> int:
    """Count the words of *text*. In scripts without spaces, two letters count as one word."""
    unspaced = 0 if text.isascii() else len(re.findall(_UNSPACED, text))
    spaced = re.sub(_UNSPACED, " ", text) if unspaced else text
    return len(spaced.split()) + unspaced // parameters.LETTERS_PER_WORD
