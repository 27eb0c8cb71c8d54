"""Offline spelling correction of queries.

* Known words are not changed. They occur in the catalog or in a likely language of the query, or
  are written as a name, an identifier or a literal.
* An unknown word is replaced by the best guess of the error model, if that guess is more likely
  than a correct word that no list contains.
* If the query's language has no word list, guesses are words of the catalog.
* In a language other than the catalog's, only one error per word is corrected, and only if even the
  longest word list lacks the word, because inflected and compound words look like errors.
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
"""Maximum number of corrected words in a query."""
KNOWN_SHARE = 0.4
KNOWN_SHARE_ELSEWHERE = 0.6
"""Minimum shares of known words at which a query counts as written in a language: `KNOWN_SHARE` for
the first language of a script, this one for others."""
MAX_UNKNOWN = 2
"""Number of unknown words that a query in the first language of its script may always have."""
MIN_FOREIGN_LETTERS = 6
"""Minimum letters of a corrected word, if the query's language is unknown."""
MIN_LETTERS = 4
"""Minimum letters of a corrected word. Shorter ones have too many similar words."""
MAX_LETTERS = 48
"""Maximum letters of a corrected word. Longer ones are keys or codes, and cost quadratic time."""
_MARKS = "\u0300-\u036f\u064b-\u0652\u0670\u0900-\u0903\u093a-\u094f\u0962\u0963"
_WORD = re.compile(rf"[^\W\d_](?:[^\W\d_]|[{_MARKS}]|['\u2019](?=[^\W\d_]))*")
_PLAIN_WORD = re.compile(r"[a-z]+(?:'[a-z]+)*")
"""Words in a casefolded ASCII text, found three times as fast as by `_WORD`."""
_POSSESSIVES = frozenset({"'s", "\u2019s"})
_ADJOINING_SIGNS = frozenset("@#$/\\_=&~%+")
_FIRST = frozenset(names[0] for names in LANGUAGES.values())
_ENGLISH_SHARE = 0.4
"""Minimum share of common English words in an English query."""
_LIKELY_SHARE = 0.75
"""Minimum score of a likely language, as a share of the best score."""
_PREFERRED_SHARE = 0.6
"""Minimum score at which the first language of a script is preferred, as a share of the best."""
_MAX_LIKELY = 3


class QueryWord(NamedTuple):
    """Word of a query, without its ``'s``."""

    start: int
    written: str
    folded: str
    """Casefolded word with straight apostrophes, as in word lists."""
    script: str
    """Script such as ``latin``; empty if not corrected, because it is rare or lacks spaces."""


class SpellingCorrector:
    """Spelling correction with the words of the index in each call.

    Args:
        folder: Folder of the word lists; None corrects by the catalog's words only.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._corrector: CatalogCorrector | None = None

    def __call__(self, index: BM25Index, query: str, mask: Mask | None = None) -> Correction:
        """Correct *query* with words of *index*, visible in the entities of *mask* (None: all)."""
        corrector = self._corrector
        if corrector is None or corrector.catalog.postings is not index:
            words = CatalogWords(postings=index)
            corrector = self._corrector = CatalogCorrector(words, self._folder)
        return corrector.correct(query, mask)


@dataclass(frozen=True)
class CatalogCorrector:
    """Spelling correction for one catalog."""

    catalog: CatalogWords
    folder: Path | None = None
    """Folder of the word lists, or None."""

    def correct(self, query: str, mask: Mask | None = None) -> Correction:
        """Return the corrected query and the changes, without words found only outside *mask*."""
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
        """Return whether *query* is correct English, as most queries are. This check is fast."""
        if self.folder is None or not query.isascii():
            return False
        text_words = {word.removesuffix("'s") for word in _PLAIN_WORD.findall(query.casefold())}
        rare = text_words - common_words(self.folder, "en")
        if not text_words or len(text_words) - len(rare) < _ENGLISH_SHARE * len(text_words):
            return False
        unknown = [word for word in rare if not self.catalog.contains(word)]
        return not unknown or word_list(self.folder, "en").costs.keys() >= set(unknown)

    def _likely_languages(self, script: str, group: Sequence[QueryWord]) -> list[WordList]:
        """Return the word lists of the languages that *group* is likely in, most likely first.

        Args:
            script: Script of *group*.
            group: Words of the query.
        """
        if self.folder is None or script not in LANGUAGES:
            return []
        first, *others = LANGUAGES[script]
        text_words = Counter(word.folded for word in group)
        names: list[str] = []
        if others and not _has_common_words(word_list(self.folder, first), text_words):
            signs = language_signs(self.folder, script)
            names = likely_languages(signs, text_words, rather=first)
        lists = (word_list(self.folder, name) for name in names or [first])
        return [words for words in lists if words.costs]

    def _language_of(self, group: Sequence[QueryWord], lists: Sequence[WordList]) -> list[WordList]:
        """Return the first of *lists* as a list if *group* is in its language, else [].

        Too many unknown words rule it out. Short words do not count, because all languages share
        them.
        """
        long_words = [word.folded for word in group if len(word.folded) >= MIN_LETTERS]
        unknown = sum(not self._is_known(word, lists[:1]) for word in long_words)
        is_first_language = bool(lists) and lists[0].language in _FIRST
        max_unknown = (
            max((1 - KNOWN_SHARE) * len(long_words), MAX_UNKNOWN)
            if is_first_language
            else (1 - KNOWN_SHARE_ELSEWHERE) * len(long_words)
        )
        return [] if unknown > max_unknown else list(lists[:1])

    @cached_property
    def _catalog_language(self) -> str:
        """Most likely language of the catalog, an ISO 639 code; empty without word lists."""
        scripts = Counter(filter(None, map(_script, self.catalog.words.costs)))
        if self.folder is None or not scripts:
            return ""
        script = scripts.most_common(1)[0][0]
        words = dict.fromkeys(self.catalog.words.costs, 1)
        first, signs = LANGUAGES[script][0], language_signs(self.folder, script)
        return (likely_languages(signs, words, rather=first) or [first])[0]

    def _is_wrong(self, word: QueryWord, lists: Sequence[WordList]) -> bool:
        """Return whether *word*, which is not in *lists*, is probably misspelt.

        In a language other than the catalog's, only a long word list can decide.
        """
        if self.folder is None or not lists:
            return True
        if lists[0].language == self._catalog_language:
            return word.folded not in language_signs(self.folder, word.script)
        hashes = [rare_words(self.folder, words.language) for words in lists]
        is_listed = any((words == hash(word.folded)).any() for words in hashes)
        return not is_listed and len(hashes[0]) >= RARE_WORDS

    def _guess(
        self,
        query: str,
        group: Sequence[QueryWord],
        lists: Sequence[WordList],
        language_lists: Sequence[WordList],
    ) -> dict[QueryWord, str]:
        """Return the corrections of misspelt words of *group*, keyed by word.

        Args:
            query: Whole query.
            group: Words of the query in one script.
            lists: Word lists of the likely languages, with correct words.
            language_lists: Word list of the query's language, with guesses; empty if unknown.
        """
        unknown = [word for word in group if not self._is_known(word.folded, lists)]
        min_letters = MIN_LETTERS if language_lists else MIN_FOREIGN_LETTERS
        misspelt = [
            word
            for word in _correctable(query, unknown)
            if len(word.folded) >= min_letters and self._is_wrong(word, lists)
        ][:MAX_GUESSES]
        is_foreign = bool(misspelt and lists) and lists[0].language != self._catalog_language
        every_list = [self.catalog.words, *language_lists] if misspelt else []
        typed = [word.folded for word in misspelt]
        guesses = find_guesses(typed, every_list, slips=1 if is_foreign else 2)
        corrections: dict[QueryWord, str] = {}
        for word, choices in zip(misspelt, guesses, strict=True):
            if (
                language_lists
                and not is_foreign
                and (split := split_words(word.folded, every_list))
            ):
                choices[split[0]] = split[1]
            best = min(choices, key=lambda guess: (choices[guess], guess), default="")
            # People do not type accents by mistake, so a guess without the accent is wrong.
            loses_accent = best.isascii() and not word.folded.isascii()
            if best and not loses_accent and choices[best] < unknown_cost(word.written):
                corrections[word] = _match_case(word.written, best)
        return corrections

    def _is_visible(self, guess: str, language_lists: Sequence[WordList], mask: Mask) -> bool:
        """Return whether each word of *guess* is in a word list or in an entity of *mask*."""
        return all(
            any(word in words.costs for words in language_lists) or self.catalog.occurs(word, mask)
            for word in guess.casefold().split()
        )

    def _is_known(self, word: str, lists: Sequence[WordList]) -> bool:
        return any(word in words.costs for words in lists) or self.catalog.contains(word)


def _words(query: str) -> list[QueryWord]:
    result: list[QueryWord] = []
    for match in _WORD.finditer(query):
        written = match.group()
        if written[-2:] in _POSSESSIVES:
            written = written[:-2]
        folded = written.casefold()
        if not folded.isascii():
            folded = folded.replace("\u2019", "'")
        result.append(QueryWord(match.start(), written, folded, _script(folded)))
    return result


def _correctable(query: str, candidates: Sequence[QueryWord]) -> list[QueryWord]:
    """Return the *candidates* that may be corrected.

    Others are too short or too long, parts of literals and identifiers, or in mixed case.
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
        and not _is_part_of_token(query, word.start, word.start + len(word.written))
    ]


def _match_case(written: str, better: str) -> str:
    """Return *better* with capital letters as in *written*."""
    if written.isupper():
        return better.upper()
    return better[:1].upper() + better[1:] if written[:1].isupper() else better


def _is_part_of_token(query: str, start: int, end: int) -> bool:
    """Return whether the word ``query[start:end]`` is part of a path, an address or code."""
    before, after, beyond = query[start - 1 : start], query[end : end + 1], query[end + 1 : end + 2]
    if before in _ADJOINING_SIGNS or after in _ADJOINING_SIGNS or (before and before in ".:"):
        return True
    return before.isdigit() or after.isdigit() or (after in {".", ":"} and beyond.isalnum())


def _script(word: str) -> str:
    # Unicode names of letters begin with their script: "CYRILLIC SMALL LETTER A".
    script = unicodedata.name(word[0], "").partition(" ")[0].lower()
    return script if script in LANGUAGES else ""


def _has_common_words(language: WordList, text_words: Collection[str]) -> bool:
    """Return whether *text_words* have enough common words to be in *language*."""
    common = sum(language.costs.get(word, COMMON) < COMMON for word in text_words)
    return bool(text_words) and common >= _ENGLISH_SHARE * len(text_words)


def likely_languages(
    signs: LanguageSigns, text_words: Mapping[str, int], *, rather: str = ""
) -> list[str]:
    """Return the languages that a text is likely written in, most likely first; at most three.

    Args:
        signs: Most common words of each language.
        text_words: Number of occurrences, keyed by word of the text.
        rather: Language that comes first if it is nearly as likely as the best one.
    """
    scores = Counter[str]()
    for word, count in text_words.items():
        for language, points in signs.get(word, {}).items():
            scores[language] += count * points
    best = max(scores.values(), default=0)
    likely = [
        language
        for language, score in scores.most_common()
        if score >= _LIKELY_SHARE * best and language != rather
    ]
    first = [rather] if scores[rather] >= _PREFERRED_SHARE * best > 0 else []
    return [*first, *likely][:_MAX_LIKELY]
