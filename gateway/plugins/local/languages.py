"""Mean vectors of languages, subtracted from query vectors of multilingual-e5-small.

A sentence vector of this model also depends on the language of the text. In a query, this part is
noise, because it favours tools whose texts happen to resemble the language. So each query is
centred on the mean of its language, which is the nearest mean in the model's space. A language
detector is not needed.
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
"""Codes (ISO 639-1) of the languages that the Universal Sentence Encoder was trained on."""
_OTHER_SCRIPTS = frozenset(["bg", "bn", "el", "fa", "he", "hi", "uk"])
"""Codes of languages that the encoder was not trained on and whose script is not Latin."""
_READABLE = re.compile(
    "[a-zA-Z"
    "äöüßÄÖÜàâæçéèêëîïôœùûüÿÀÂÆÇÉÈÊËÎÏÔŒÙÛÜŸáíóúñÁÍÓÚÑãõÃÕìòÌÒ"
    "ąćęłńśźżĄĆĘŁŃŚŹŻğışĞİŞ"
    "\u0401\u0410-\u044f\u0451"
    "\u0600-\u06ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\u0e00-\u0e7f]*"
)
"""Pattern of words that consist only of letters of `USE_LANGUAGES`."""
_WORD = re.compile(r"[^\W\d_]+")
_FOREIGN_SHARE = 0.2
"""Share of unreadable words from which a text counts as written in another language. A lower share
may be names."""
_MIN_CONFIDENCE = 0.2
"""Minimum confidence in a text whose language is unknown, so that only its letters are checked."""


class LanguageMeans:
    """Mean vectors of languages.

    Args:
        means: Mean vector of short requests in a language, shape (d,), keyed by ISO 639-1 code. All
            languages have the same requests in translation, so the means differ only by language.
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
            The centred vectors, and the code of the nearest language for each vector.
        """
        nearest = ((rows - self._overall) @ self._directions.T).argmax(axis=1)
        return rows - self._means[nearest], [self._codes[number] for number in nearest.tolist()]


def use_confidence(text: str, language: str = "") -> float:
    """Return the confidence that the Universal Sentence Encoder understands *text*, 0 to 1.

    * Without words: 1.
    * In a language that the encoder knows, or in an unknown one: 1, reduced by words with letters
      outside `USE_LANGUAGES`.
    * In another language: 0. If the language has another script, the share of words in ASCII
      letters, which are mostly names.

    Args:
        text: Any text.
        language: ISO 639-1 code of the text's language. Empty if unknown.
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
