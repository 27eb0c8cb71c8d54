"""Error model of typing: costs of typing errors, and guesses for misspelt words.

The cost of a guess is that of its rarity plus that of the typing error (noisy channel; Kernighan,
Church and Gale 1990), in centibels (cB). 100 cB more means ten times less likely.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from gateway.plugins.spelling.word_lists import WordList
from graphs.lexical.analysis import bare

UNKNOWN = 450
UNKNOWN_LETTER = 80
"""Cost of each letter of a kept unknown word, in addition to `UNKNOWN`."""
NAME = 100
"""Reduction for an unknown word with a capital first letter, which may be a name."""
SPACE = 250
"""Cost of a missing space."""
TWO_EDITS = 600
FIRST_LETTER = 100
"""Additional cost of an error in the first letter."""
SLIPS: Mapping[str, int] = {
    "accent": 50, "double": 200, "swap": 220, "lost": 250, "near": 250, "extra": 350, "other": 350,
}  # fmt: skip
LONG = 7
"""Minimum letters of a word with two typing errors."""
_LONGEST_PIECE = 20
_SHORTEST_GUESS = 3
_ONE_LETTER_WORDS = frozenset("ai")
_ROWS = (("qwertyuiop", "asdfghjkl", "zxcvbnm"), ("йцукенгшщзх", "фывапролджэ", "ячсмитьбю"))


def _adjacent_keys() -> frozenset[tuple[str, str]]:
    pairs = {pair for rows in _ROWS for row in rows for pair in pairwise(row)}
    for rows in _ROWS:
        for upper, lower in pairwise(rows):
            pairs |= {*zip(upper, lower, strict=False), *zip(upper[1:], lower, strict=False)}
    return frozenset(pairs | {(right, left) for left, right in pairs})


_ADJACENT_KEYS = _adjacent_keys()


def unknown_cost(written: str) -> int:
    """Return the cost of keeping *written* as an unknown word."""
    return UNKNOWN + UNKNOWN_LETTER * len(written) - (NAME if written[:1].isupper() else 0)


def find_guesses(
    typed: Sequence[str], lists: Sequence[WordList], *, slips: int = 2
) -> list[dict[str, int]]:
    """Return the costs of the guesses for each typed word, keyed by guess.

    Guesses are words of *lists* one edit away. If a long word has none and *slips* is 2, words two
    edits away are guesses.
    """
    tables = [(words, _distances(typed, words.guessable)) for words in lists]
    return [
        _guesses_of(word, [(words, distances[number]) for words, distances in tables], slips)
        for number, word in enumerate(typed)
    ]


def _distances(typed: Sequence[str], words: Sequence[str]) -> np.ndarray:
    """Return edit distances, shape (len(typed), len(words)), with 3 for all above 2."""
    from rapidfuzz.distance import OSA  # noqa: PLC0415  (only a misspelt word needs it)
    from rapidfuzz.process import cdist  # noqa: PLC0415  (only a misspelt word needs it)

    return cdist(typed, words, scorer=OSA.distance, score_cutoff=2, dtype=np.uint8)


def _guesses_of(
    typed: str, tables: Sequence[tuple[WordList, np.ndarray]], slips: int
) -> dict[str, int]:
    choices: dict[str, int] = {}
    for words, distances in tables:
        for choice in _at_distance(words, distances <= 1):
            _add_guess(choices, words, choice, edit_cost(typed, choice))
        if accented := words.accented.get(bare(typed)):
            _add_guess(choices, words, accented, SLIPS["accent"])
    if choices or len(typed) < LONG or slips < 2:
        return choices
    for words, distances in tables:
        for choice in _at_distance(words, distances == 2):
            if choice[0] == typed[0]:
                _add_guess(choices, words, choice, TWO_EDITS)
    return choices


def _at_distance(words: WordList, mask: np.ndarray) -> list[str]:
    return [words.guessable[position] for position in mask.nonzero()[0].tolist()]


def _add_guess(choices: dict[str, int], words: WordList, choice: str, cost: int) -> None:
    if len(choice) >= _SHORTEST_GUESS:
        price = words.costs[choice] + cost
        choices[choice] = min(price, choices.get(choice, price))


def edit_cost(typed: str, meant: str) -> int:
    """Return the cost of typing *typed* instead of *meant*, one edit away; 0 if equal."""
    pairs = enumerate(zip(typed, meant, strict=False))
    position = next((position for position, (a, b) in pairs if a != b), min(len(typed), len(meant)))
    return (
        SLIPS[_kind(typed, meant, position)] + (0 if position else FIRST_LETTER)
        if typed != meant
        else 0
    )


def _kind(typed: str, meant: str, at: int) -> str:
    if len(typed) < len(meant):
        return "lost"
    if len(typed) > len(meant):
        return "double" if at and typed[at] == typed[at - 1] else "extra"
    if typed[at : at + 2] == meant[at : at + 2][::-1]:
        return "swap"
    if bare(typed[at]) == bare(meant[at]):
        return "accent"
    return "near" if (typed[at], meant[at]) in _ADJACENT_KEYS else "other"


def split_words(typed: str, lists: Sequence[WordList]) -> tuple[str, int] | None:
    """Split *typed* into known words without spaces between them.

    Returns:
        The cheapest split and its cost; None without a split.
    """
    best: list[tuple[int, tuple[str, ...]] | None] = [(0, ())]
    for end in range(1, len(typed) + 1):
        splits: list[tuple[int, tuple[str, ...]]] = []
        for start in range(max(0, end - _LONGEST_PIECE), end):
            before, piece = best[start], typed[start:end]
            if before and (len(piece) > 1 or piece in _ONE_LETTER_WORDS):
                prices = [words.costs[piece] for words in lists if piece in words.costs]
                splits += [(before[0] + price + SPACE, (*before[1], piece)) for price in prices]
        best.append(min(splits) if splits else None)
    guesses = best[-1]
    return (" ".join(guesses[1]), guesses[0] - SPACE) if guesses and len(guesses[1]) > 1 else None
