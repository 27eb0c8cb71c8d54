"""What it costs that a finger slipped, and what a word may have been before. Pure.

The noisy channel of Kernighan, Church and Gale (1990): a guess costs its rarity and its slip.
Costs are in centibels: 100 cB dearer is ten times as unlikely.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType

from gateway.spelling.word_lists import Costs, WordList
from graphs.lexical.analysis import bare
from graphs.lexical.deletions import HashedWords

UNKNOWN = 450
UNKNOWN_LETTER = 80
"""What an unknown word costs as it is, and what each of its letters adds."""
NAME = 100
"""How much less one with a capital letter costs: it may be a name."""
SPACE = 250
"""What a lost space costs."""
TWO_EDITS = 600
FIRST_LETTER = 100
"""What a slip on the first letter costs more."""
SLIPS: Mapping[str, int] = MappingProxyType(
    {"accent": 50, "double": 200, "swap": 220, "lost": 250, "near": 250, "extra": 350, "other": 350}
)
LONG = 7
"""From so many letters on, two slips may have happened."""
_LONGEST_PIECE = 20
_SHORTEST_GUESS = 3
_ALONE = frozenset("ai")
_ROWS = (
    ("qwertyuiop", "asdfghjkl", "zxcvbnm"),
    ("йцукенгшщзх", "фывапролджэ", "ячсмитьбю"),
)


def _beside() -> frozenset[tuple[str, str]]:
    pairs = {pair for rows in _ROWS for row in rows for pair in pairwise(row)}
    for rows in _ROWS:
        for upper, lower in pairwise(rows):
            pairs |= {*zip(upper, lower, strict=False), *zip(upper[1:], lower, strict=False)}
    return frozenset(pairs | {(right, left) for left, right in pairs})


_BESIDE = _beside()


def unknown_cost(written: str) -> int:
    """Return what *written* costs if it is an unknown word."""
    return UNKNOWN + UNKNOWN_LETTER * len(written) - (NAME if written[:1].isupper() else 0)


def find_guesses(typed: Sequence[str], lists: Sequence[WordList]) -> list[dict[str, int]]:
    """Give, for each word of *typed*, what it may have been and what that costs.

    Guesses are words of *lists* one slip away; two slips away if there are none and it is long.
    """
    guesses: list[dict[str, int]] = [{} for _ in typed]
    hashed = HashedWords.of(typed)
    for words in lists:
        for word, choices, ids in zip(
            typed, guesses, words.near.within_one_edit(hashed), strict=True
        ):
            for at in ids:
                _offer(choices, words, words.near.words[at], edit_cost(word, words.near.words[at]))
            if accented := words.accented.get(bare(word)):
                _offer(choices, words, accented, SLIPS["accent"])
    for word, choices in zip(typed, guesses, strict=True):
        if not choices and len(word) >= LONG:
            _two_slips(choices, word, lists)
    return guesses


def _two_slips(choices: dict[str, int], typed: str, lists: Sequence[WordList]) -> None:
    for words in lists:
        for at in words.near.within_two_edits(typed):
            _offer(choices, words, words.near.words[at], TWO_EDITS)


def _offer(choices: dict[str, int], words: WordList, choice: str, cost: int) -> None:
    if len(choice) >= _SHORTEST_GUESS:
        price = words.costs[choice] + cost
        choices[choice] = min(price, choices.get(choice, price))


def edit_cost(typed: str, meant: str) -> int:
    """Return what it costs to type *typed* for *meant*, one edit away; 0 if it is equal."""
    pairs = enumerate(zip(typed, meant, strict=False))
    at = next((at for at, (a, b) in pairs if a != b), min(len(typed), len(meant)))
    return SLIPS[_kind(typed, meant, at)] + (0 if at else FIRST_LETTER) if typed != meant else 0


def _kind(typed: str, meant: str, at: int) -> str:
    if len(typed) < len(meant):
        return "lost"
    if len(typed) > len(meant):
        return "double" if at and typed[at] == typed[at - 1] else "extra"
    if typed[at : at + 2] == meant[at : at + 2][::-1]:
        return "swap"
    if bare(typed[at]) == bare(meant[at]):
        return "accent"
    return "near" if (typed[at], meant[at]) in _BESIDE else "other"


def split_words(typed: str, lists: Sequence[Costs]) -> tuple[str, int] | None:
    """Find the words that *typed* is without the spaces between them, and what that costs.

    Returns:
        The cheapest way to cut *typed* into known words; None if there is none.
    """
    best: list[tuple[int, tuple[str, ...]] | None] = [(0, ())]
    for end in range(1, len(typed) + 1):
        ways: list[tuple[int, tuple[str, ...]]] = []
        for start in range(max(0, end - _LONGEST_PIECE), end):
            before, piece = best[start], typed[start:end]
            if before and (len(piece) > 1 or piece in _ALONE):
                prices = [costs[piece] for costs in lists if piece in costs]
                ways += [(before[0] + price + SPACE, (*before[1], piece)) for price in prices]
        best.append(min(ways) if ways else None)
    guesses = best[-1]
    return (" ".join(guesses[1]), guesses[0] - SPACE) if guesses and len(guesses[1]) > 1 else None
