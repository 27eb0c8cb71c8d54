"""Words and their frequencies, from the catalog and from word lists of languages.

* Word lists are data files of the package ``wordfreq`` (extra ``local``), read directly, because
  importing the package takes ten times as long.
* A list is read when needed, and cached. Queries of very common words read only its start.
* Costs are in centibels (cB). 100 cB more means ten times rarer.
"""

from __future__ import annotations

import gzip
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib.util import find_spec
from itertools import chain, islice
from pathlib import Path
from typing import TypeAlias

import numpy as np

from gateway.index.eligibility import Mask
from gateway.runtime.vectors import NDArray
from graphs.lexical.analysis import bare, stem
from graphs.lexical.bm25_index import BM25Index

LIST_WORDS = 60_000
"""Number of most common words that are read for a language."""
GUESSED_WORDS = 40_000
"""Number of most common words that may be guesses."""
RARE_WORDS = 100_000
"""Minimum length of a list that can show that a word is wrong, in a language other than the
catalog's."""
HEAD_WORDS = 1000
"""Number of most common words that identify a language."""
COMMON = 400
"""Cost in cB below which a word indicates its language."""
MAX_LISTS = 6
"""Maximum number of word lists in memory, 15 MB each."""
LANGUAGES: Mapping[str, tuple[str, ...]] = {
    "latin": (
        "en", "es", "fr", "de", "it", "pt", "nl", "pl", "tr", "sv", "da", "nb", "fi", "cs",
        "sk", "ro", "hu", "id", "ca", "sh", "sl", "lt", "lv",
    ),
    "cyrillic": ("ru", "uk", "bg", "mk"),
    "arabic": ("ar", "fa", "ur"),
    "devanagari": ("hi",),
    "greek": ("el",),
    "hebrew": ("he",),
}  # fmt: skip
"""Languages with a word list, keyed by script, likely ones first."""
_READ_BYTES = 1 << 13
"""Number of bytes read at a time. A list has megabytes, with the most common words first."""
_FORMAT = {"format": "cB", "version": 1}
Costs: TypeAlias = Mapping[str, int]
LanguageSigns: TypeAlias = Mapping[str, Mapping[str, int]]
"""Points (> 0) for languages, keyed by word and language."""


@dataclass(frozen=True, kw_only=True)
class WordList:
    """Words and costs, most common first."""

    language: str
    """ISO 639 code; empty for the catalog's words."""
    costs: Costs

    @cached_property
    def guessable(self) -> Sequence[str]:
        """Most common words, which may be guesses."""
        return list(islice(self.costs, GUESSED_WORDS))

    @cached_property
    def accented(self) -> Mapping[str, str]:
        """Most common accented spelling, keyed by the spelling without accents."""
        costs_by_word: dict[str, str] = {}
        for word in self.costs:
            if not word.isascii() and (plain := bare(word)) != word:
                costs_by_word.setdefault(plain, word)
        return costs_by_word


@dataclass(frozen=True, kw_only=True)
class CatalogWords:
    """Words of a catalog's text index."""

    postings: BM25Index

    def contains(self, word: str) -> bool:
        """Return whether an entity contains *word* or an inflection of it."""
        return word in self.postings.word_rows or stem(word) in self.postings.terms

    def occurs(self, word: str, mask: Mask) -> bool:
        """Return whether an entity in *mask* contains *word* or an inflection of it."""
        index = self.postings
        stemmed = index.terms.get(stem(word))
        rows = [*index.word_rows.get(word, ()), *([] if stemmed is None else [stemmed])]
        return any(index.occurs_in(row, mask) for row in rows)

    @cached_property
    def words(self) -> WordList:
        """Words of the catalog in their spelling, cheaper if more entities contain them."""
        counts = np.diff(self.postings.offsets)[self.postings.word_terms].tolist()
        spelt = zip(counts, self.postings.words, strict=True)
        counted_words = [(count, word) for count, word in spelt if word]
        total = math.log10(max(sum(count for count, _ in counted_words), 1))
        costs_by_word: dict[str, int] = {}
        for cost, word in sorted(
            (round(100 * (total - math.log10(c))), word) for c, word in counted_words
        ):
            costs_by_word.setdefault(word, cost)
        return WordList(language="", costs=costs_by_word)


def find_word_lists() -> Path | None:
    """Return the folder of the word lists; None without the extra ``local``."""
    spec = find_spec("wordfreq")
    return Path(spec.origin).parent / "data" if spec and spec.origin else None


@lru_cache(maxsize=MAX_LISTS)
def word_list(folder: Path, language: str) -> WordList:
    """Read the `LIST_WORDS` most common words of *language*; empty without a list."""
    return WordList(language=language, costs=_read(folder, language, LIST_WORDS))


@lru_cache(maxsize=MAX_LISTS)
def common_words(folder: Path, language: str) -> frozenset[str]:
    """Read the words of *language* that cost less than `COMMON`."""
    return frozenset(chain.from_iterable(islice(_words_by_cost(folder, language), COMMON)))


@lru_cache(maxsize=sum(map(len, LANGUAGES.values())))
def rare_words(folder: Path, language: str) -> NDArray[np.int64]:
    """Return the hashes of all words of *language*, which takes up to half a second."""
    words = chain.from_iterable(_words_by_cost(folder, language))
    return np.fromiter(map(hash, words), dtype=np.int64)


@lru_cache(maxsize=len(LANGUAGES))
def language_signs(folder: Path, script: str) -> LanguageSigns:
    """Read the common words of all languages of *script*, with their points."""
    signs: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for language in LANGUAGES[script]:
        for word, cost in _read(folder, language, HEAD_WORDS).items():
            if cost < COMMON:
                signs[word][language] = COMMON - cost
    return dict(signs)


def _read(folder: Path, language: str, limit: int) -> Costs:
    costs_by_word: dict[str, int] = {}
    for cost, words in enumerate(_words_by_cost(folder, language)):
        costs_by_word.update(dict.fromkeys(words[: limit - len(costs_by_word)], cost))
        if len(costs_by_word) >= limit:
            break
    return costs_by_word


def _words_by_cost(folder: Path, language: str) -> Iterator[list[str]]:
    """Yield lists of the words that cost 0 cB, 1 cB, and so on.

    The file is ``[header, [words of 0 cB], [words of 1 cB], …]``.
    """
    import msgpack  # noqa: PLC0415  (an optional extra)

    names = (f"large_{language}.msgpack.gz", f"small_{language}.msgpack.gz")
    path = next((folder / name for name in names if (folder / name).is_file()), None)
    if path is None:
        return
    with gzip.open(path, "rb") as file:
        stream = msgpack.Unpacker(file, raw=False, read_size=_READ_BYTES)
        rows = stream.read_array_header() - 1
        if stream.unpack() != _FORMAT:
            return
        for _ in range(rows):
            yield stream.unpack()
