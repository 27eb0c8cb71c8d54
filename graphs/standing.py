"""Where named things stand, as they move: a change hashes what came, not all that is there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Self, TypeVar, overload

import numpy as np

from graphs.arrays import Moves
from graphs.patched import patched

_SLACK = 1024
"""So many numbers may be of nobody, and as many as there are things."""
_T = TypeVar("_T")


class Standing(Mapping[str, int]):
    """The place of each name. Immutable; names come in no order.

    Args:
        numbers: Each name's own, which it keeps as long as it is there.
        places: Where who has a number stands, int64; -1 for a number of nobody.
    """

    __slots__ = ("_at", "_numbers", "_places")

    def __init__(self, numbers: Mapping[str, int], places: np.ndarray) -> None:
        self._numbers = numbers
        self._places = places
        # One number at a time, a view gives Python's own.
        self._at: memoryview = places.data

    @classmethod
    def of(cls, names: Sequence[str]) -> Self:
        """Give the places of *names*, which stand in this order and differ."""
        size = len(names)
        return cls(dict(zip(names, range(size), strict=True)), np.arange(size, dtype=np.int64))

    def moved(self, names: Sequence[str], gone: Iterable[str], moves: Moves) -> Self:
        """Give the same after *moves*.

        Args:
            names: All of them, as they stand then.
            gone: Those that left a place; one that took another is among the new ones again.
            moves: Of the places.
        """
        first = self.room
        if first + len(moves.new) > 2 * len(names) + _SLACK:
            return self.of(names)
        came = {names[at]: first + number for number, at in enumerate(moves.new)}
        numbers = patched(self._numbers, gone, came)
        new = np.asarray(moves.new, dtype=np.int64)
        return type(self)(numbers, np.concatenate([moves.placed(self._places), new]))

    @property
    def room(self) -> int:
        """How many numbers there are, those of nobody among them."""
        return len(self._places)

    def __getitem__(self, name: str) -> int:
        """Give the place of *name*."""
        place: int = self._at[self._numbers[name]]
        return place

    @overload
    def get(self, name: str, default: None = None, /) -> int | None: ...
    @overload
    def get(self, name: str, default: int, /) -> int: ...
    @overload
    def get(self, name: str, default: _T, /) -> int | _T: ...
    def get(self, name: str, default: object = None, /) -> object:
        """Give the place of *name*, or *default*."""
        number = self._numbers.get(name)
        return default if number is None else self._at[number]

    def __contains__(self, name: object) -> bool:
        """Say whether *name* has a place."""
        return name in self._numbers

    def __iter__(self) -> Iterator[str]:
        """Give the names."""
        return iter(self._numbers)

    def __len__(self) -> int:
        """Count the names."""
        return len(self._numbers)
