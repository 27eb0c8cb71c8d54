"""What words there are, and how common: the catalog's own, and those of the query's languages.

* Languages come from the data files of the package ``wordfreq`` (extra ``local``), read straight:
  importing that package costs ten times what a list does.
* A list is read when a query first needs it, up to its commonest words, and kept in the process;
  of a query that needs none but very common words and those of the catalog, its head alone.
* Costs are in centibels: 100 cB dearer is ten times as rare, 0 cB is a word that is every word.
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
"""How many words of a language are known."""
GUESSED_WORDS = 40_000
"""How many of them a misspelt word may turn out to be."""
RARE_WORDS = 100_000
"""Only a list of so many words can say that a word of another language than the catalog's is
wrong."""
HEAD_WORDS = 1000
"""By how many of them a language is recognised."""
COMMON = 400
"""Dearer words are no sign of a language."""
MAX_LISTS = 6
"""How many languages are kept in memory, about 15 MB each."""
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
"""The languages of each script that is mended, the likelier first."""
_READ_BYTES = 1 << 13
"""Read at once: a list has megabytes, and its head is in the first of them."""
_FORMAT = {"format": "cB", "version": 1}
Costs: TypeAlias = Mapping[str, int]
LanguageSigns: TypeAlias = Mapping[str, Mapping[str, int]]
"""By word: the languages that it is a sign of, and how much of one, > 0."""


@dataclass(frozen=True, kw_only=True)
class WordList:
    """Words with what they cost, the commonest first."""

    language: str
    """ISO 639; empty for the words of the catalog."""
    costs: Costs

    @cached_property
    def guessable(self) -> Sequence[str]:
        """The commonest words, which a misspelt one may have been."""
        return list(islice(self.costs, GUESSED_WORDS))

    @cached_property
    def accented(self) -> Mapping[str, str]:
        """The commonest accented spelling of each word, by how it looks without accents."""
        costs_by_word: dict[str, str] = {}
        for word in self.costs:
            if not word.isascii() and (plain := bare(word)) != word:
                costs_by_word.setdefault(plain, word)
        return costs_by_word


@dataclass(frozen=True, kw_only=True)
class CatalogWords:
    """The words of one index."""

    postings: BM25Index

    def contains(self, word: str) -> bool:
        """Return whether some entity holds *word*, in this or another form."""
        return word in self.postings.word_rows or stem(word) in self.postings.terms

    def occurs(self, word: str, mask: Mask) -> bool:
        """Return whether an entity that passes *mask* holds *word*, in this or another form."""
        index = self.postings
        stemmed = index.terms.get(stem(word))
        rows = [*index.word_rows.get(word, ()), *([] if stemmed is None else [stemmed])]
        return any(index.occurs_in(row, mask) for row in rows)

    @cached_property
    def words(self) -> WordList:
        """The words as they are written, by how many entities hold them."""
        counts = np.diff(self.postings.offsets)[self.postings.word_terms].tolist()
        spelt = zip(counts, self.postings.words, strict=True)
        held = [(count, word) for count, word in spelt if word]
        total = math.log10(max(sum(count for count, _ in held), 1))
        costs_by_word: dict[str, int] = {}
        for cost, word in sorted((round(100 * (total - math.log10(c))), word) for c, word in held):
            costs_by_word.setdefault(word, cost)
        return WordList(language="", costs=costs_by_word)


def find_word_lists() -> Path | None:
    """Return where the lists are; None without the extra ``local``."""
    spec = find_spec("wordfreq")
    return Path(spec.origin).parent / "data" if spec and spec.origin else None


@lru_cache(maxsize=MAX_LISTS)
def word_list(folder: Path, language: str) -> WordList:
    """Read the commonest `LIST_WORDS` words of *language*; none if there is no list."""
    return WordList(language=language, costs=_read(folder, language, LIST_WORDS))


@lru_cache(maxsize=MAX_LISTS)
def common_words(folder: Path, language: str) -> frozenset[str]:
    """Read the words of *language* that cost less than `COMMON`, a sixtieth of the whole list."""
    return frozenset(chain.from_iterable(islice(_priced(folder, language), COMMON)))


@lru_cache(maxsize=sum(map(len, LANGUAGES.values())))
def rare_words(folder: Path, language: str) -> NDArray[np.int64]:
    """Read the hashes of all words of *language*, common and rare; up to half a second."""
    words = chain.from_iterable(_priced(folder, language))
    return np.fromiter(map(hash, words), dtype=np.int64)


@lru_cache(maxsize=len(LANGUAGES))
def language_signs(folder: Path, script: str) -> LanguageSigns:
    """Read of which languages of *script* a word is a sign; see `HEAD_WORDS` and `COMMON`."""
    signs: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for language in LANGUAGES[script]:
        for word, cost in _read(folder, language, HEAD_WORDS).items():
            if cost < COMMON:
                signs[word][language] = COMMON - cost
    return dict(signs)


def _read(folder: Path, language: str, limit: int) -> Costs:
    costs_by_word: dict[str, int] = {}
    for cost, words in enumerate(_priced(folder, language)):
        costs_by_word.update(dict.fromkeys(words[: limit - len(costs_by_word)], cost))
        if len(costs_by_word) >= limit:
            break
    return costs_by_word


def _priced(folder: Path, language: str) -> Iterator[list[str]]:
    """Return the words of a list by their costs: ``[header, [words of 0 cB], [of 1 cB], …]``."""
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
