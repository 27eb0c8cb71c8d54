"""One query in all its forms: as it was said, as it was meant to be spelt, and in English. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from gateway.index.vectors.exact import VectorQuery
from gateway.runtime.vectors import Vector
from graphs.lexical.analysis import Token, tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One query in all its forms."""

    query: str
    """As the user said it; blank if there is only a context."""
    english: str
    """Its English form; the query itself if nobody rewrote it."""
    mended: str = ""
    """As it was probably meant to be spelt; empty, or the query itself, if nothing was mended."""
    context: str = ""
    """What the caller said besides the query; empty if nothing."""
    clauses: tuple[str, ...] = ()
    """The parts of a long request: as they were said and, where that differs, as mended. Empty for
    a short one."""
    parts: int = 0
    """How many parts there are, each counted once, whatever its forms; 0 for a short request."""
    taken_apart: dict[str, Sequence[Token]] = field(default_factory=dict, compare=False)
    """The tokens of the texts that were looked up so far: a cache, filled by `tokens`."""

    @property
    def texts(self) -> tuple[str, ...]:
        """What vectors and words see: all forms, with the context; the graph's form last."""
        if not self.context:
            return self._forms
        return tuple(f"{form}. {self.context}" if form else self.context for form in self._forms)

    @property
    def all_texts(self) -> tuple[str, ...]:
        """The texts and the clauses: all that has to be embedded, possibly with repetitions."""
        return (*self.texts, *self.clauses)

    @property
    def graph_text(self) -> str:
        """What the graph sees: the English form, else the mended one, with the context."""
        return self.texts[-1]

    @property
    def judged(self) -> tuple[str, ...]:
        """What confidence is measured on: the query without its context, if there is one."""
        return self._forms if self.query else (self.context,)

    @property
    def _forms(self) -> tuple[str, ...]:
        """The original, the mended and the English form, each once."""
        query, mended = self.query, self.mended or self.query
        if query == mended == self.english:
            return (query,)
        rewritten = (self.english,) if self.english != query else ()
        return tuple(dict.fromkeys((query, mended, *rewritten)))

    def tokens(self, text: str) -> Sequence[Token]:
        """Split one of the texts into tokens, once for all indexes that it is looked up in."""
        if text not in self.taken_apart:
            self.taken_apart[text] = tokens(text)
        return self.taken_apart[text]

    def question(self, found: Mapping[str, Vector], common: Vector | None = None) -> VectorQuery:
        """Give the vectors of the texts and of the clauses.

        Args:
            found: The unit vector of each of `all_texts`, shape (d,).
            common: See `VectorQuery.common`.
        """
        rows = [found[text] for text in self.texts]
        texts = rows[0][None] if len(rows) == 1 else np.array(rows)
        parts = [found[text] for text in self.clauses]
        clauses = np.array(parts) if parts else texts[:0]
        return VectorQuery(texts=texts, clauses=clauses, common=common)
