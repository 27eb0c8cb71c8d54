"""The words of a query as somebody typed them, and which of them nobody may touch. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from gateway.text import literals

MIN_LETTERS = 4
"""Shorter words say too little of what was meant."""
_MARKS = "\u0300-\u036f\u064b-\u0652\u0670\u0900-\u0903\u093a-\u094f\u0962\u0963"
_WORD = re.compile(rf"[^\W\d_](?:[^\W\d_]|[{_MARKS}]|['\u2019](?=[^\W\d_]))*")
_CLINGING = frozenset("@#$/\\_=&~%+")
_SCRIPTS: tuple[tuple[int, int, str], ...] = (
    (0x0041, 0x024F, "latin"),
    (0x0370, 0x03FF, "greek"),
    (0x0400, 0x052F, "cyrillic"),
    (0x0590, 0x05FF, "hebrew"),
    (0x0600, 0x06FF, "arabic"),
    (0x0900, 0x097F, "devanagari"),
    (0x1E00, 0x1EFF, "latin"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """One word of a query, without its ``'s``."""

    start: int
    written: str
    folded: str
    """Casefolded, with straight apostrophes: how word lists spell it."""
    script: str
    """Empty for scripts that are not mended: those without spaces, and rare ones."""
    fixed: bool
    """Whether it stays as it is: short, a part of a literal or of an identifier, mixed-case."""

    @property
    def end(self) -> int:
        """Where it ends in the query."""
        return self.start + len(self.written)


def words(query: str) -> Iterator[Word]:
    """Give the words of *query*, in order."""
    fixed = {part for literal in literals(query) for part in _WORD.findall(literal)}
    shouted = query.isupper()
    for match in _WORD.finditer(query):
        written = match.group().removesuffix("'s").removesuffix("\u2019s")
        folded = written.casefold().replace("\u2019", "'")
        script = _script(folded)
        yield Word(
            start=match.start(),
            written=written,
            folded=folded,
            script=script,
            fixed=not script
            or len(written) < MIN_LETTERS
            or written in fixed
            or not (shouted or written[1:] == written[1:].lower())
            or _clings(query, match.start(), match.end()),
        )


def cased(written: str, better: str) -> str:
    """Give *better* with the capitals of *written*."""
    if written.isupper():
        return better.upper()
    return better[:1].upper() + better[1:] if written[:1].isupper() else better


def _clings(query: str, start: int, end: int) -> bool:
    """Say whether the word between *start* and *end* is a part of a path, an address or code."""
    before, after, beyond = query[start - 1 : start], query[end : end + 1], query[end + 1 : end + 2]
    if before in _CLINGING or after in _CLINGING or (before and before in ".:"):
        return True
    return before.isdigit() or after.isdigit() or (after in {".", ":"} and beyond.isalnum())


def _script(word: str) -> str:
    letter = ord(word[0])
    return next((name for first, last, name in _SCRIPTS if first <= letter <= last), "")
