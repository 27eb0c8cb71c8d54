"""Texts -> the pieces that multilingual-e5 reads: a unigram model over words (SentencePiece).

* Letters are normalized, blanks joined, and each word begins with the mark of a blank. No piece
  holds that mark inside, so each word is split by itself, and words that were seen are remembered.
* A piece is worth its log probability; the best sum wins (Viterbi; Kudo 2018, arXiv 1804.10959).
* The pieces lie in a trie that is mapped into memory: it costs nothing to open.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from gateway.embed.weights import Weights

_MARK = "\u2581"
_BLANKS = re.compile(" {2,}")
_WORDS = re.compile(f"{_MARK}[^{_MARK}]*")
_UNLIKELY = 10.0
"""By how much an unknown letter is worth less than the least likely piece."""
_REMEMBERED = 20_000
_WORD = 32
"""Longer words are not remembered: in a script without blanks a whole text is one."""
_PIECE = 16
"""How many letters the longest piece has."""
_TRIE, _NUMBERS = "pieces.trie", "pieces.npy"


def write_pieces(weights: Weights, folder: Path) -> None:
    """Write the pieces of *weights* into *folder*, ready to be mapped.

    The marks of a text's ends and gaps are no pieces: what a text says must not be read as one.
    """
    from marisa_trie import Trie  # noqa: PLC0415  (an optional extra)

    spelt = {
        piece: number
        for number, piece in enumerate(weights.pieces())
        if not (piece.startswith("<") and weights.scores[number] == 0)
    }
    trie = Trie(spelt)
    numbers = np.empty(len(trie), dtype=np.int32)
    for piece, number in spelt.items():
        numbers[trie[piece]] = number
    trie.save(str(folder / _TRIE))
    np.save(folder / _NUMBERS, numbers, allow_pickle=False)


class Pieces:
    """The pieces of texts.

    Args:
        weights: Letters and scores.
        folder: What `write_pieces` wrote.
    """

    def __init__(self, weights: Weights, folder: Path) -> None:
        from marisa_trie import Trie  # noqa: PLC0415  (an optional extra)

        self._trie: Any = Trie().mmap(str(folder / _TRIE))
        self._numbers = np.load(folder / _NUMBERS, mmap_mode="r", allow_pickle=False)
        self._scores = weights.scores
        self._letters: Mapping[int, str] = weights.letters
        self._unknown = weights.unknown
        self._least = float(weights.scores.min()) - _UNLIKELY
        self._short = lru_cache(maxsize=_REMEMBERED)(self._best)

    def __call__(self, text: str) -> Sequence[int]:
        """Give the numbers of the pieces of *text*, without its ends."""
        plain = _BLANKS.sub(" ", text.translate(self._letters)).replace(" ", _MARK)
        marked = plain if plain.startswith(_MARK) else _MARK + plain
        return [number for word in _WORDS.findall(marked) for number in self._word(word)]

    def _word(self, word: str) -> Sequence[int]:
        return self._short(word) if len(word) <= _WORD else self._best(word)

    def _best(self, word: str) -> Sequence[int]:
        worth = [0.0] + [-np.inf] * len(word)
        last = [(0, self._unknown)] * (len(word) + 1)
        for at in range(len(word)):
            so_far = worth[at]
            for piece, place in self._trie.iter_prefixes_with_ids(word[at : at + _PIECE]):
                number = int(self._numbers[place])
                total, end = so_far + float(self._scores[number]), at + len(piece)
                if total > worth[end]:
                    worth[end], last[end] = total, (at, number)
            if so_far + self._least > worth[at + 1]:
                worth[at + 1], last[at + 1] = so_far + self._least, (at, self._unknown)
        found = []
        end = len(word)
        while end:
            end, number = last[end]
            found.append(number)
        return found[::-1]
