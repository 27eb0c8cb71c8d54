"""Typing errors, always the same: swapped, lost or doubled letters, near keys, lost spaces.

The randomness comes from SHA-256 over seed, key and text, so a noisy query is never stored. Words
that hold digits or mark-up, and words of fewer than four letters, are arguments: they stay.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator

_ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
_UNTOUCHED = re.compile(r"[\d@/\\:._]")
_MIN_LETTERS = 4


class Draw:
    """Numbers that only depend on a text."""

    def __init__(self, key: str) -> None:
        self._key = key.encode()
        self._count = 0

    def share(self) -> float:
        """Return the next number in [0, 1)."""
        self._count += 1
        digest = hashlib.sha256(self._key + self._count.to_bytes(4, "big")).digest()
        return int.from_bytes(digest[:6], "big") / 2**48

    def below(self, bound: int) -> int:
        """Return the next whole number below *bound*."""
        return int(self.share() * bound)


def _swap(word: str, draw: Draw) -> str:
    at = 1 + draw.below(len(word) - 2)
    return word[:at] + word[at + 1] + word[at] + word[at + 2 :]


def _lose(word: str, draw: Draw) -> str:
    at = 1 + draw.below(len(word) - 1)
    return word[:at] + word[at + 1 :]


def _double(word: str, draw: Draw) -> str:
    at = draw.below(len(word))
    return word[: at + 1] + word[at:]


def _neighbour(word: str, draw: Draw) -> str:
    at = draw.below(len(word))
    row = next((row for row in _ROWS if word[at].lower() in row), "")
    if not row:
        return _lose(word, draw)
    place = row.index(word[at].lower())
    beside = [row[spot] for spot in (place - 1, place + 1) if 0 <= spot < len(row)]
    return word[:at] + beside[draw.below(len(beside))] + word[at + 1 :]


_WAYS: tuple[Callable[[str, Draw], str], ...] = (_swap, _lose, _double, _neighbour)


def noisy(text: str, *, rate: float, seed: int, key: str) -> str:
    """Return *text* with a typing error in about a share *rate* of its words.

    Args:
        text: What was meant.
        rate: 0 to 1.
        seed: Another seed makes other errors.
        key: The query's id.
    """
    draw = Draw(f"{seed}|{rate}|{key}|{text}")
    return "".join(_pieces(text, rate, draw))


def _pieces(text: str, rate: float, draw: Draw) -> Iterator[str]:
    lost = False
    for piece in re.findall(r"\s+|\S+", text):
        if piece.isspace():
            yield "" if lost else piece
            lost = False
            continue
        letters = piece.strip(".,;!?()\"'")
        touched = len(letters) >= _MIN_LETTERS and not _UNTOUCHED.search(letters)
        if not touched or draw.share() >= rate:
            yield piece
        elif draw.below(len(_WAYS) + 1) == len(_WAYS):
            lost = True
            yield piece
        else:
            yield piece.replace(letters, _WAYS[draw.below(len(_WAYS))](letters, draw), 1)
