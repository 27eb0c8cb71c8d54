"""Small changes of long arrays: what stays is copied as it lies, in one pass of the memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

_FEW = 512
_FEW_PASSES = 12
"""So many passes over an array cost less than one that picks from a table."""


def inserted(array: np.ndarray, places: Sequence[int], values: np.ndarray) -> np.ndarray:
    """Give *array* with *values* before its *places*.

    Args:
        array: One dimension.
        places: One a value, ascending, at most the length of the array.
        values: Of the array's type.
    """
    if not len(places):
        return array
    if len(places) > _FEW:
        return np.insert(array, places, values)
    rows, given = _plain(array), _plain(values)
    parts: list[np.ndarray] = []
    start = 0
    for at, place in enumerate(places):
        parts += (rows[start:place], given[at : at + 1])
        start = place
    return np.concatenate([*parts, rows[start:]]).view(array.dtype)


def without(array: np.ndarray, places: Sequence[int]) -> np.ndarray:
    """Give *array* without its *places*, which are ascending and differ."""
    if not len(places):
        return array
    if len(places) > _FEW:
        return np.delete(array, places)
    rows = _plain(array)
    parts: list[np.ndarray] = []
    start = 0
    for place in places:
        parts.append(rows[start:place])
        start = place + 1
    return np.concatenate([*parts, rows[start:]]).view(array.dtype)


def _plain(array: np.ndarray) -> np.ndarray:
    """Give *array* with its rows as bytes, if they have fields, which are copied one by one."""
    return array.view(f"V{array.itemsize}") if array.dtype.names else array


@dataclass(frozen=True, slots=True, kw_only=True)
class Moves:
    """Where numbered things stand after some of them went and others came between them."""

    size: int
    """How many there were."""
    gone: Sequence[int]
    """Which of them are gone, ascending."""
    new: Sequence[int]
    """Which of those that there are then are new, ascending."""

    @property
    def after(self) -> int:
        """How many there are then."""
        return self.size - len(self.gone) + len(self.new)

    def of(self, numbers: np.ndarray) -> np.ndarray:
        """Give the numbers that *numbers* have then; none of them is gone. Their order stays."""
        if not (self.gone or self.new):
            return numbers
        if len(self.gone) + len(self.new) > _FEW_PASSES:
            picked: np.ndarray = self.table().astype(numbers.dtype)[numbers]
            return picked
        found = numbers
        for gone in reversed(self.gone):
            found = found - (numbers > gone)
        for new in self.new:
            found = found + (found >= new)
        return found

    def placed(self, numbers: np.ndarray) -> np.ndarray:
        """Give the numbers that *numbers* have then, -1 for those that are gone; -1 stays -1."""
        if len(self.gone) + len(self.new) > _FEW_PASSES:
            # The last place of the table is for those that were gone before.
            picked: np.ndarray = np.append(self.table(), -1)[numbers]
            return picked
        stays = np.where(np.isin(numbers, self.gone), -1, numbers) if self.gone else numbers
        return self.of(stays)

    def table(self) -> np.ndarray:
        """Give the number that each has then, -1 for those that are gone, int64."""
        stay = np.ones(self.size, dtype=np.bool_)
        stay[np.asarray(self.gone, dtype=np.intp)] = False
        free = np.ones(self.after, dtype=np.bool_)
        free[np.asarray(self.new, dtype=np.intp)] = False
        moved = np.full(self.size, -1, dtype=np.int64)
        moved[stay] = np.flatnonzero(free)
        return moved

    def rows(self, array: np.ndarray) -> np.ndarray:
        """Give the rows of *array* where they stand then, zeros in the places of new ones."""
        found = np.zeros((self.after, *array.shape[1:]), dtype=array.dtype)
        start = at = 0
        new = [*self.new, self.after]
        for end in (*self.gone, self.size):
            while start < end:
                while at == new[0]:
                    at += 1
                    new.pop(0)
                run = min(end - start, new[0] - at)
                found[at : at + run] = array[start : start + run]
                start, at = start + run, at + run
            start = end + 1
        return found
