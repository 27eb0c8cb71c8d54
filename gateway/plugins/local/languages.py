"""Means of languages, taken off the query vectors of multilingual-e5-small.

A sentence vector of this model contains its language. In a query that part is noise: it lifts tools
whose texts happen to resemble the language. So a query is centred on the mean of its own language,
which is the nearest one in the model's own space. No language detector is needed.
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
"""Languages that the encoder was not trained on and whose script is not Latin."""
_READABLE = re.compile(
    "[a-zA-Z"
    "äöüßÄÖÜàâæçéèêëîïôœùûüÿÀÂÆÇÉÈÊËÎÏÔŒÙÛÜŸáíóúñÁÍÓÚÑãõÃÕìòÌÒ"
    "ąćęłńśźżĄĆĘŁŃŚŹŻğışĞİŞ"
    "\u0401\u0410-\u044f\u0451"
    "\u0600-\u06ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\u0e00-\u0e7f]*"
)
"""Letters of `USE_LANGUAGES`."""
_WORD = re.compile(r"[^\W\d_]+")
_FOREIGN_SHARE = 0.2
"""With this share of unreadable words a text is of another language; fewer may be names."""
_MIN_CONFIDENCE = 0.2
"""Minimum confidence by letters alone, where the language of a text is not known."""


class LanguageMeans:
    """Mean vectors of languages.

    Args:
        means: Mean vector of short requests in a language, shape (d,), keyed by its ISO 639-1 code.
            The requests say the same in each language, so that means differ by language alone.
    """

    def __init__(self, means: Mapping[str, Vector]) -> None:
        self._codes = tuple(means)
        self._means = np.array([means[code] for code in self._codes])
        self._overall: Vector = self._means.mean(axis=0)
        self._directions = unit_rows(self._means - self._overall)

    def centre(self, rows: Matrix) -> tuple[Matrix, list[str]]:
        """Take the mean of its language off each of *rows*, query vectors of shape (n, d).

        Returns:
            The centred rows, and the code of the language that is nearest to each.
        """
        nearest = ((rows - self._overall) @ self._directions.T).argmax(axis=1)
        return rows - self._means[nearest], [self._codes[at] for at in nearest.tolist()]


def use_confidence(text: str, language: str = "") -> float:
    """Return the share of *text* that the Universal Sentence Encoder reads, 0 to 1.

    Args:
        text: Any text. A text without a word is read in full.
        language: ISO 639-1 code of the text's language; empty if it is not known. Then letters
            decide: a text with letters of no `USE_LANGUAGES` is noise to the encoder. In a language
            of another script that the encoder does not know, it still reads words in ASCII letters,
            which are mostly names.
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
