"""The words of a query as they were typed, and which of them may be corrected. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

from gateway.runtime.text import literals
from gateway.spelling.word_lists import LANGUAGES

MIN_LETTERS = 4
"""Shorter words say too little of what was meant."""
MAX_LETTERS = 48
"""Longer ones are no words: keys, codes, a cat on the keyboard. To mend one costs its square."""
_MARKS = "\u0300-\u036f\u064b-\u0652\u0670\u0900-\u0903\u093a-\u094f\u0962\u0963"
_WORD = re.compile(rf"[^\W\d_](?:[^\W\d_]|[{_MARKS}]|['\u2019](?=[^\W\d_]))*")
_PLAIN_WORD = re.compile(r"[a-z]+(?:'[a-z]+)*")
"""The same in a casefolded ASCII text, found in a third of the time."""
_OWNERS = frozenset({"'s", "\u2019s"})
_CLINGING = frozenset("@#$/\\_=&~%+")


class QueryWord(NamedTuple):
    """One word of a query, without its ``'s``."""

    start: int
    written: str
    folded: str
    """Casefolded, with straight apostrophes: how word lists spell it."""
    script: str
    """Empty for scripts that are not mended: those without spaces, and rare ones."""


def fold_words(query: str) -> set[str]:
    """Return the different words of *query*, an ASCII text, as word lists spell them."""
    return {word.removesuffix("'s") for word in _PLAIN_WORD.findall(query.casefold())}


def words(query: str) -> list[QueryWord]:
    """Return the words of *query*, in order."""
    result: list[QueryWord] = []
    for match in _WORD.finditer(query):
        written = match.group()
        if written[-2:] in _OWNERS:
            written = written[:-2]
        folded = written.casefold()
        if not folded.isascii():
            folded = folded.replace("\u2019", "'")
        result.append(QueryWord(match.start(), written, folded, _script(folded)))
    return result


def correctable(query: str, candidates: Sequence[QueryWord]) -> list[QueryWord]:
    """Return those of *candidates*, words of *query*, that may be corrected.

    Words too short or too long stay, parts of literals and of identifiers, and words in mixed case.
    """
    fixed = {part for literal in literals(query) for part in _WORD.findall(literal)}
    shouted = query.isupper()
    return [
        word
        for word in candidates
        if word.script
        and MIN_LETTERS <= len(word.written) <= MAX_LETTERS
        and word.written not in fixed
        and (shouted or word.written[1:] == word.written[1:].lower())
        and not _clings(query, word.start, word.start + len(word.written))
    ]


def match_case(written: str, better: str) -> str:
    """Return *better* with the capitals of *written*."""
    if written.isupper():
        return better.upper()
    return better[:1].upper() + better[1:] if written[:1].isupper() else better


def _clings(query: str, start: int, end: int) -> bool:
    """Return whether the word between *start* and *end* is a part of a path, an address or code."""
    before, after, beyond = query[start - 1 : start], query[end : end + 1], query[end + 1 : end + 2]
    if before in _CLINGING or after in _CLINGING or (before and before in ".:"):
        return True
    return before.isdigit() or after.isdigit() or (after in {".", ":"} and beyond.isalnum())


def _script(word: str) -> str:
    # Letters are named after their script: "CYRILLIC SMALL LETTER A".
    script = unicodedata.name(word[0], "").partition(" ")[0].lower()
    return script if script in LANGUAGES else ""
