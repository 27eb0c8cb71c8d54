"""The offline spelling pass: what a misspelt query probably means.

* A known word stays: of the catalog, of a likely language, or written by the user as a name,
  an identifier or a literal.
* Any other word becomes the likeliest guess of the error model, if that is less of
  unlikely than an unknown word.
* A query in no language that we have a list of is mended from the catalog alone.
* In another language than the catalog's only one slip is mended, and only if no list, however long,
  holds the word: there inflected and compound words are rarer than slips look.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from gateway.index.eligibility import Mask
from gateway.plugins.spelling.error_model import find_guesses, split_words, unknown_cost
from gateway.plugins.spelling.word_lists import (
    COMMON,
    LANGUAGES,
    RARE_WORDS,
    CatalogWords,
    LanguageSigns,
    WordList,
    common_words,
    language_signs,
    rare_words,
    word_list,
)
from gateway.runtime.text import literals
from gateway.search.query import Correction
from graphs.lexical.bm25_index import BM25Index

MAX_GUESSES = 32
"""How many unknown words of one query are mended."""
KNOWN_SHARE = 0.4
KNOWN_ABROAD = 0.6
"""Of a query with fewer known words than this share, in its script's first language or in another,
the language is none of ours."""
FEW = 2
"""So many unknown words do not yet make a query foreign, in its script's first language."""
MIN_FOREIGN_LETTERS = 6
"""Without a language, shorter words are not mended."""
MIN_LETTERS = 4
"""Shorter words say too little of what was meant."""
MAX_LETTERS = 48
"""Longer ones are no words: keys, codes, a cat on the keyboard. To mend one costs its square."""
_MARKS = "\u0300-\u036f\u064b-\u0652\u0670\u0900-\u0903\u093a-\u094f\u0962\u0963"
_WORD = re.compile(rf"[^\W\d_](?:[^\W\d_]|[{_MARKS}]|['\u2019](?=[^\W\d_]))*")
_PLAIN_WORD = re.compile(r"[a-z]+(?:'[a-z]+)*")
"""The same in a casefolded ASCII text, found in a third of the time, as word lists spell it."""
_OWNERS = frozenset({"'s", "\u2019s"})
_CLINGING = frozenset("@#$/\\_=&~%+")
_FIRST = frozenset(names[0] for names in LANGUAGES.values())
_PLAINLY = 0.4
"""With this share of common English words, a query is in English."""
_LIKELY = 0.75
"""How near to the best language's score another one's must be."""
_RATHER = 0.6
"""How near that of a script's first language must be for it to come first."""
_MAX_LIKELY = 3


class QueryWord(NamedTuple):
    """One word of a query, without its ``'s``."""

    start: int
    written: str
    folded: str
    """Casefolded, with straight apostrophes: how word lists spell it."""
    script: str
    """Empty for scripts that are not mended: those without spaces, and rare ones."""


class SpellingCorrector:
    """Mends queries to whichever index is current.

    Args:
        folder: Where the word lists are; None mends from the catalog alone.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._corrector: CatalogCorrector | None = None

    def __call__(self, index: BM25Index, query: str, mask: Mask | None = None) -> Correction:
        """See `gateway.search.query.Correct`."""
        corrector = self._corrector
        if corrector is None or corrector.catalog.postings is not index:
            words = CatalogWords(postings=index)
            corrector = self._corrector = CatalogCorrector(words, self._folder)
        return corrector.correct(query, mask)


@dataclass(frozen=True)
class CatalogCorrector:
    """Mends queries to one catalog."""

    catalog: CatalogWords
    folder: Path | None = None
    """Where the word lists are; None mends from the catalog alone."""

    def correct(self, query: str, mask: Mask | None = None) -> Correction:
        """Correct *query*; a text without words comes back as it is."""
        if self._is_plain_english(query):
            return Correction(text=query)
        rare_words = _words(query)
        changed: dict[QueryWord, str] = {}
        for script in dict.fromkeys(word.script for word in rare_words):
            group = [word for word in rare_words if word.script == script]
            lists = self._likely_languages(script, group)
            language_lists = self._language_of(group, lists)
            guesses = self._guess(query, group, lists, language_lists)
            changed |= {
                word: guess
                for word, guess in guesses.items()
                if mask is None or self._is_visible(guess, language_lists, mask)
            }
        text = query
        for word, guess in sorted(changed.items(), reverse=True):
            text = text[: word.start] + guess + text[word.start + len(word.written) :]
        return Correction(
            text=text,
            changed=tuple((word.written, guess) for word, guess in sorted(changed.items())),
        )

    def _is_plain_english(self, query: str) -> bool:
        """Return quickly whether *query* is English without a fault, as most queries are."""
        if self.folder is None or not query.isascii():
            return False
        text_words = {word.removesuffix("'s") for word in _PLAIN_WORD.findall(query.casefold())}
        rare = text_words - common_words(self.folder, "en")
        if not text_words or len(text_words) - len(rare) < _PLAINLY * len(text_words):
            return False
        strange = [word for word in rare if not self.catalog.contains(word)]
        return not strange or word_list(self.folder, "en").costs.keys() >= set(strange)

    def _likely_languages(self, script: str, group: Sequence[QueryWord]) -> list[WordList]:
        """Return the lists of the languages that *group* may be in, the likeliest first."""
        if self.folder is None or script not in LANGUAGES:
            return []
        first, *others = LANGUAGES[script]
        text_words = Counter(word.folded for word in group)
        names: list[str] = []
        if others and not _is_plainly(word_list(self.folder, first), text_words):
            signs = language_signs(self.folder, script)
            names = likely_languages(signs, text_words, rather=first)
        lists = (word_list(self.folder, name) for name in names or [first])
        return [each for each in lists if each.costs]

    def _language_of(self, group: Sequence[QueryWord], lists: Sequence[WordList]) -> list[WordList]:
        """Return the list that *group* is in; none if the likeliest knows too little of it.

        Short words do not count: any language has some that look like them.
        """
        long = [word.folded for word in group if len(word.folded) >= MIN_LETTERS]
        strange = sum(not self._is_known(word, lists[:1]) for word in long)
        at_home = bool(lists) and lists[0].language in _FIRST
        most = (
            max((1 - KNOWN_SHARE) * len(long), FEW) if at_home else (1 - KNOWN_ABROAD) * len(long)
        )
        return [] if strange > most else list(lists[:1])

    @cached_property
    def _home(self) -> str:
        """The likeliest language of the catalog's own words; empty without word lists."""
        scripts = Counter(filter(None, map(_script, self.catalog.words.costs)))
        if self.folder is None or not scripts:
            return ""
        script = scripts.most_common(1)[0][0]
        words = dict.fromkeys(self.catalog.words.costs, 1)
        first, signs = LANGUAGES[script][0], language_signs(self.folder, script)
        return (likely_languages(signs, words, rather=first) or [first])[0]

    def _is_wrong(self, word: QueryWord, lists: Sequence[WordList]) -> bool:
        """Return whether *word*, which none of *lists* knows, is no word of another language.

        In another language than the catalog's only the long lists can tell.
        """
        if self.folder is None or not lists:
            return True
        if lists[0].language == self._home:
            return word.folded not in language_signs(self.folder, word.script)
        every = [rare_words(self.folder, each.language) for each in lists]
        is_listed = any((words == hash(word.folded)).any() for words in every)
        return not is_listed and len(every[0]) >= RARE_WORDS

    def _guess(
        self,
        query: str,
        group: Sequence[QueryWord],
        lists: Sequence[WordList],
        language_lists: Sequence[WordList],
    ) -> dict[QueryWord, str]:
        """Return what the words of *group* that none of *lists* knows become."""
        strange = [word for word in group if not self._is_known(word.folded, lists)]
        min_letters = MIN_LETTERS if language_lists else MIN_FOREIGN_LETTERS
        misspelt = [
            word
            for word in _correctable(query, strange)
            if len(word.folded) >= min_letters and self._is_wrong(word, lists)
        ][:MAX_GUESSES]
        abroad = bool(misspelt and lists) and lists[0].language != self._home
        every_list = [self.catalog.words, *language_lists] if misspelt else []
        typed = [word.folded for word in misspelt]
        guesses = find_guesses(typed, every_list, slips=1 if abroad else 2)
        corrections: dict[QueryWord, str] = {}
        for word, choices in zip(misspelt, guesses, strict=True):
            if language_lists and not abroad and (split := split_words(word.folded, every_list)):
                choices[split[0]] = split[1]
            best = min(choices, key=lambda guess: (choices[guess], guess), default="")
            # No finger slips into an accent: such a word is of a language that has it.
            loses_accent = best.isascii() and not word.folded.isascii()
            if best and not loses_accent and choices[best] < unknown_cost(word.written):
                corrections[word] = _match_case(word.written, best)
        return corrections

    def _is_visible(self, guess: str, language_lists: Sequence[WordList], mask: Mask) -> bool:
        """Return whether each word of *guess* is of a language, or of an eligible entity."""
        return all(
            any(word in each.costs for each in language_lists) or self.catalog.occurs(word, mask)
            for word in guess.casefold().split()
        )

    def _is_known(self, word: str, lists: Sequence[WordList]) -> bool:
        return any(word in each.costs for each in lists) or self.catalog.contains(word)


def _words(query: str) -> list[QueryWord]:
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


def _correctable(query: str, candidates: Sequence[QueryWord]) -> list[QueryWord]:
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


def _match_case(written: str, better: str) -> str:
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


def _is_plainly(language: WordList, text_words: Collection[str]) -> bool:
    """Return whether common words of *language* are enough of *text_words* to look no further."""
    common = sum(language.costs.get(word, COMMON) < COMMON for word in text_words)
    return bool(text_words) and common >= _PLAINLY * len(text_words)


def likely_languages(
    signs: LanguageSigns, text_words: Mapping[str, int], *, rather: str = ""
) -> list[str]:
    """Return the languages that a text may be in, the likeliest first; at most three.

    Args:
        signs: The commonest words of each language.
        text_words: The words of the text, and how often they stand in it.
        rather: Comes first if it is nearly as likely as the likeliest.
    """
    scores = Counter[str]()
    for word, count in text_words.items():
        for language, points in signs.get(word, {}).items():
            scores[language] += count * points
    best = max(scores.values(), default=0)
    likely = [
        language
        for language, score in scores.most_common()
        if score >= _LIKELY * best and language != rather
    ]
    first = [rather] if scores[rather] >= _RATHER * best > 0 else []
    return [*first, *likely][:_MAX_LIKELY]
