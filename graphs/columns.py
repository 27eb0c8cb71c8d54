"""Facts as arrays: what a saved index looks like, read one fact at a time.

Loading must not build a hundred thousand objects that no question asks for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import TypeAlias, overload

import numpy as np

from graphs.facts.fact import Fact

ROW = np.dtype(
    [
        ("subject", "<i4"),
        ("predicate", "<i4"),
        ("object", "<i4"),
        ("literal", "?"),
        ("weight", "<f8"),
        ("language", "<i4"),
        ("datatype", "<i4"),
        ("path", "<i4"),
        ("line", "<i4"),
        ("origin", "<i4"),
        ("declared", "?"),
    ]
)
"""One fact; texts are ids of a table, in the order of the fields of `Fact`."""
_Row: TypeAlias = tuple[int, int, int, bool, float, int, int, int, int, int, bool]
_VALUES = attrgetter(*(ROW.names or ()))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Texts:
    """A table of texts, decoded one by one."""

    blob: np.ndarray
    """All texts after one another as UTF-8, uint8."""
    offsets: np.ndarray
    """Where each text begins, and where the last one ends, int64."""

    @classmethod
    def of(cls, texts: Iterable[str]) -> Texts:
        """Write *texts* down; half characters are kept."""
        encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
        lengths = np.fromiter(map(len, encoded), dtype=np.int64, count=len(encoded))
        return cls(
            blob=np.frombuffer(b"".join(encoded), dtype=np.uint8),
            offsets=np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)]),
        )

    def __getitem__(self, at: int) -> str:
        """Decode the text at *at*."""
        start, end = self.offsets[at : at + 2].tolist()
        return self.blob[start:end].tobytes().decode("utf-8", "surrogatepass")


class FactRows(Sequence[Fact]):
    """Facts in an array, made when they are asked for."""

    def __init__(self, rows: np.ndarray, texts: Texts) -> None:
        self.rows = rows
        self.texts = texts

    @classmethod
    def of(cls, facts: Iterable[Fact]) -> FactRows:
        """Write *facts* down as rows of an array."""
        ids: dict[str, int] = {}
        rows = [_row(fact, ids) for fact in facts]
        return cls(np.array(rows, dtype=ROW), Texts.of(ids))

    def __len__(self) -> int:
        """Count the facts."""
        return len(self.rows)

    @overload
    def __getitem__(self, at: int) -> Fact: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[Fact, ...]: ...
    def __getitem__(self, at: int | slice) -> Fact | tuple[Fact, ...]:
        """Make the fact at *at*, or those of a slice."""
        if isinstance(at, slice):
            return tuple(map(self._fact, self.rows[at].tolist()))
        return self._fact(self.rows[at].item())

    def __iter__(self) -> Iterator[Fact]:
        """Make every fact in order."""
        return map(self._fact, self.rows.tolist())

    def _fact(self, row: _Row) -> Fact:
        text = self.texts.__getitem__
        return Fact(
            subject=text(row[0]),
            predicate=text(row[1]),
            object=text(row[2]),
            literal=row[3],
            weight=row[4],
            language=text(row[5]),
            datatype=text(row[6]),
            path=text(row[7]),
            line=row[8],
            origin=text(row[9]),
            declared=row[10],
        )


def _row(fact: Fact, ids: dict[str, int]) -> tuple[object, ...]:
    return tuple(
        ids.setdefault(value, len(ids)) if isinstance(value, str) else value
        for value in _VALUES(fact)
    )
