"""Many texts in one: what a saved index holds of its words, cut apart when somebody asks.

A start that cuts a hundred thousand texts apart, and hashes them, uses a few hundred of them. The
first few are cut out, or looked for, one by one; who asks for more has all of them at once.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TypeVar, overload

import numpy as np

__all__ = ["CUT", "Joined", "Numbered", "joined", "kept", "numbered"]
CUT = "\0"
"""Stands before each text and after the last one; in none of them."""
_CUT = CUT.encode()
_FEW = 64
"""To cut so many texts out costs less than to cut all apart."""
_FEW_LOOKS = 16
_SHORT = 1 << 17
"""In so many bytes a text is found sooner than all texts are numbered."""
_T = TypeVar("_T")


def joined(texts: Iterable[str]) -> tuple[np.ndarray, np.ndarray]:
    """Write *texts* down as one, uint8, half characters too; and where it is cut, int32."""
    told = "".join(CUT + text for text in texts) + CUT
    written = np.frombuffer(told.encode("utf-8", "surrogatepass"), dtype=np.uint8)
    return written, np.flatnonzero(written == 0).astype(np.int32)


class Joined(Sequence[str]):
    """Texts as `joined` writes them.

    Args:
        written: What it gave.
        cuts: The same.
    """

    def __init__(self, written: np.ndarray, cuts: np.ndarray) -> None:
        self._written = written
        self._cuts: memoryview = cuts.data
        self._left = _FEW

    @cached_property
    def _bytes(self) -> bytes:
        return self._written.tobytes()

    @cached_property
    def _texts(self) -> tuple[str, ...]:
        self._left = 0
        told = self._bytes.decode("utf-8", "surrogatepass")
        return tuple(told[1:-1].split(CUT)) if len(self) else ()

    @property
    def short(self) -> bool:
        """Whether to look for a few texts costs less than to number all."""
        return len(self._written) < _SHORT

    def find(self, text: str) -> int:
        """Give the place of *text*, the last one if there are several; -1 if there is none."""
        if CUT in text:
            return -1
        at = self._bytes.rfind(_CUT + text.encode("utf-8", "surrogatepass") + _CUT)
        return bisect_right(self._cuts, at) - 1

    def __len__(self) -> int:
        """Count them."""
        return len(self._cuts) - 1

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[str, ...]: ...
    def __getitem__(self, at: int | slice) -> str | tuple[str, ...]:
        """Give a text, or those of a slice."""
        if self._left <= 0 or isinstance(at, slice):
            return self._texts[at]
        self._left -= 1
        place = at + len(self) if at < 0 else at
        if not 0 <= place < len(self):
            raise IndexError(at)
        told = self._written[self._cuts[place] + 1 : self._cuts[place + 1]].tobytes()
        return told.decode("utf-8", "surrogatepass")

    def __iter__(self) -> Iterator[str]:
        """Give them in order."""
        return iter(self._texts)

    def __contains__(self, text: object) -> bool:
        """Say whether *text* is one of them."""
        return isinstance(text, str) and self.find(text) >= 0

    def __eq__(self, other: object) -> bool:
        """Whether *other* holds the same texts in the same order, of whatever kind it is."""
        if not isinstance(other, Sequence) or isinstance(other, str):
            return NotImplemented
        return self._texts == tuple(other)

    __hash__ = None  # type: ignore[assignment]  # as of any sequence that may equal a list

    def __repr__(self) -> str:
        """Show the texts."""
        return f"Joined({list(self)!r})"


class Numbered(Mapping[str, int]):
    """The place of each of many texts; of one that stands there twice, the last.

    Args:
        texts: Each of them is a key.
    """

    def __init__(self, texts: Joined) -> None:
        self._texts = texts
        self._left = _FEW_LOOKS

    @cached_property
    def _places(self) -> dict[str, int]:
        return dict(zip(self._texts, range(len(self._texts)), strict=True))

    @overload
    def get(self, text: str, default: None = None, /) -> int | None: ...
    @overload
    def get(self, text: str, default: _T, /) -> int | _T: ...
    def get(self, text: str, default: object = None, /) -> object:
        """Give the place of *text*, or *default*."""
        if self._left <= 0 or not self._texts.short:
            return self._places.get(text, default)
        self._left -= 1
        at = self._texts.find(text)
        return default if at < 0 else at

    def __getitem__(self, text: str) -> int:
        """Give the place of *text*."""
        at = self.get(text)
        if at is None:
            raise KeyError(text)
        return at

    def __contains__(self, text: object) -> bool:
        """Say whether *text* is there."""
        return isinstance(text, str) and self.get(text) is not None

    def __iter__(self) -> Iterator[str]:
        """Give the texts."""
        return iter(self._places)

    def __len__(self) -> int:
        """Count the texts, each once."""
        return len(self._places)


def kept(texts: Sequence[str]) -> Sequence[str]:
    """Give *texts* so that nobody can change them: as they lie in one, or as a tuple."""
    return texts if isinstance(texts, Joined) else tuple(texts)


def numbered(texts: Sequence[str]) -> Mapping[str, int]:
    """Give the place of each of *texts*; see `Numbered`."""
    if isinstance(texts, Joined):
        return Numbered(texts)
    return dict(zip(texts, range(len(texts)), strict=True))
