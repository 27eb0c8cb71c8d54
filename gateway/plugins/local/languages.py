"""Mean vectors of languages, subtracted from query vectors of multilingual-e5-small.

The language of a query is noise in its vector, because it favours tools with texts that resemble
the language. So the mean of the nearest language is subtracted. A detector is not needed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np

from gateway.runtime.text import normalize
from gateway.runtime.vectors import Matrix, Vector, unit_rows

USE_LANGUAGES = frozenset(
    ["ar", "de", "en", "es", "fr", "it", "ja", "ko", "nl", "pl", "pt", "ru", "th", "tr", "zh"]
)
"""Languages (ISO 639-1) in the training of the Universal Sentence Encoder."""
_OTHER_SCRIPTS = frozenset(["bg", "bn", "el", "fa", "he", "hi", "uk"])
"""Languages without training whose script is not Latin."""
_READABLE = re.compile(
    "[a-zA-Z"
    "äöüßÄÖÜàâæçéèêëîïôœùûüÿÀÂÆÇÉÈÊËÎÏÔŒÙÛÜŸáíóúñÁÍÓÚÑãõÃÕìòÌÒ"
    "ąćęłńśźżĄĆĘŁŃŚŹŻğışĞİŞ"
    "\u0401\u0410-\u044f\u0451"
    "\u0600-\u06ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\u0e00-\u0e7f]*"
)
"""Words of the letters of `USE_LANGUAGES`."""
_WORD = re.compile(r"[^\W\d_]+")
_FOREIGN_SHARE = 0.2
"""Share of unreadable words at which a text is in another language. Fewer may be names."""
_MIN_CONFIDENCE = 0.2
"""Minimum confidence for a text of unknown language, of which only the letters are checked."""


class LanguageMeans:
    """Mean vectors of languages.

    Args:
        means: Mean vector, shape (d,), of the same short requests in each language, keyed by ISO
            639-1 code.
    """

    def __init__(self, means: Mapping[str, Vector]) -> None:
        self._codes = tuple(means)
        self._means = np.array([means[code] for code in self._codes])
        self._overall: Vector = self._means.mean(axis=0)
        self._directions = unit_rows(self._means - self._overall)

    def centre(self, rows: Matrix) -> tuple[Matrix, list[str]]:
        """Subtract from each query vector the mean of the nearest language.

        Args:
            rows: Query vectors, shape (n, d).

        Returns:
            Centred vectors, and the code of each vector's nearest language.
        """
        nearest = ((rows - self._overall) @ self._directions.T).argmax(axis=1)
        return rows - self._means[nearest], [self._codes[number] for number in nearest.tolist()]


def use_confidence(text: str, language: str = "") -> float:
    """Return the confidence that the Universal Sentence Encoder understands *text*, 0 to 1.

    * Without words: 1.
    * In a known or unspecified language: 1, reduced by words with letters outside `USE_LANGUAGES`.
    * In another language: 0. With another script, the share of words in ASCII, mostly names.

    Args:
        text: Any text.
        language: ISO 639-1 code of the text's language; empty if unknown.
    """
    words: Sequence[str] = _WORD.findall(normalize("NFC", text))
    if not words:
        return 1.0
    if language and language not in USE_LANGUAGES:
        names = sum(map(str.isascii, words)) if language in _OTHER_SCRIPTS else 0
        return names / len(words)
    if text.isascii():
        return 1.0
    unread = sum(not _READABLE.fullmatch(word) for word in words) / len(words)
    return 1.0 - (1.0 - _MIN_CONFIDENCE) * min(1.0, unread / _FOREIGN_SHARE)
