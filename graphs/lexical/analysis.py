"""Text analysis: from texts to terms that can be compared and counted.

* Equal texts give equal terms, in documents and in queries. No text raises an error.
* The stop list contains only English function words, so words of a domain are never removed.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise
from typing import NamedTuple, TypeAlias
from unicodedata import category, normalize
from urllib.parse import quote

import numpy as np
import Stemmer

# Vowel signs and accents are parts of words, but Python's \w does not include them.
_MARKS = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf-\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    "\u06d6-\u06dc\u06df-\u06e8\u0900-\u0963\u0966-\u0df3\u0e31-\u0e4e\u0eb1-\u0ecd"
    "\u0f71-\u0f84\u0f90-\u0fbc\u102b-\u103e\u17b4-\u17d3\u1ab0-\u1aff\u1dc0-\u1dff"
    "\u200c\u200d\u20d0-\u20ff\u3099\u309a\ufe20-\ufe2f"
)
# Scripts without spaces, and Hangul, whose particles are attached to nouns.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
_CHUNK = re.compile(rf"['\u2019]s\b|[\w{_MARKS}]+(?:\+\+|\#(?!\w))?")
_NUMBERED = re.compile(r"([^\W\d_]{3,})\d+")
_CACHED_CHARS = 64
_STOP_WORDS = frozenset({
    "a", "am", "an", "and", "are", "as", "at", "be", "been", "by", "can", "could", "did", "do",
    "does", "for", "from", "had", "has", "have", "he", "her", "him", "his", "how", "i", "if",
    "in", "into", "is", "it", "its", "me", "my", "of", "on", "or", "our", "shall", "she",
    "should", "so", "than", "that", "the", "their", "them", "then", "there", "these", "they",
    "this", "those", "to", "us", "was", "we", "were", "what", "when", "where", "which", "who",
    "whom", "whose", "why", "will", "with", "would", "you", "your",
})  # fmt: skip
_BY_LANGUAGE: Mapping[str, str] = {
    "ar": "arabic", "ca": "catalan", "cs": "czech", "da": "danish", "de": "german",
    "el": "greek", "en": "english", "eo": "esperanto", "es": "spanish", "et": "estonian",
    "eu": "basque", "fa": "persian", "fi": "finnish", "fr": "french", "ga": "irish",
    "hi": "hindi", "hu": "hungarian", "hy": "armenian", "id": "indonesian", "it": "italian",
    "lt": "lithuanian", "nb": "norwegian", "ne": "nepali", "nl": "dutch", "no": "norwegian",
    "pl": "polish", "pt": "portuguese", "ro": "romanian", "ru": "russian", "sr": "serbian",
    "sv": "swedish", "ta": "tamil", "tr": "turkish", "yi": "yiddish",
}  # fmt: skip
_BY_SCRIPT: tuple[tuple[int, int, str], ...] = (
    (0x0041, 0x024F, "english"),
    (0x0370, 0x03FF, "greek"),
    (0x0400, 0x052F, "russian"),
    (0x0530, 0x058F, "armenian"),
    (0x0600, 0x077F, "arabic"),
    (0x0900, 0x097F, "hindi"),
    (0x0B80, 0x0BFF, "tamil"),
    (0x1E00, 0x1EFF, "english"),
    (0x1F00, 0x1FFF, "greek"),
)
_SCRIPT_OF_STEMMER: Mapping[str, str] = {name: name for _, _, name in _BY_SCRIPT} | {
    "nepali": "hindi", "persian": "arabic", "serbian": "russian",
}  # fmt: skip
"""Default stemmer of the script that each stemmer reads, keyed by stemmer; Latin if missing."""
Phrase: TypeAlias = tuple[str, str]
"""A text and its BCP 47 language; empty if unknown."""
Fields: TypeAlias = Mapping[str, str | tuple[Phrase, ...]]
"""Texts of one document, keyed by field."""


class Token(NamedTuple):
    """One word of a text, with its index terms. A tuple, because it is used as a dictionary key."""

    surface: str
    """The word as written."""
    parts: tuple[str, ...]
    """Terms of the word, in order; several for an identifier such as ``createInvoice``."""
    spelt: tuple[str, ...]
    """Parts of the word before stemming, without case; used to correct the spelling."""
    wholes: tuple[str, ...] = ()
    """Additional terms for the whole word (``github`` in addition to ``git``, ``hub``)."""
    stop: bool = False
    """True for a function word, which is used only if the text has no other words."""


def tokens(text: str, *, language: str = "") -> list[Token]:
    """Split *text* into tokens, in order, without function words unless there are only such words.

    Lone surrogates and control characters separate words. *language* is an ISO 639 code such as
    ``de``; empty chooses the stemmer by script.
    """
    if not text.isascii():
        text = normalize("NFKC", text)
    words: list[Token] = []
    for chunk in _CHUNK.findall(text.replace("_", " ")):
        words += (_cached_tokens if len(chunk) <= _CACHED_CHARS else _tokens)(chunk, language)
    return [token for token in words if not token.stop] or words


def stems(text: str) -> tuple[str, ...]:
    """Return the stems of the words in *text*, without duplicates.

    Function words are left out as in `tokens`.
    """
    return tuple(dict.fromkeys(part for token in tokens(text) for part in token.parts))


def stem(word: str, language: str = "") -> str:
    """Return the index term of one word without case. *language* is as in `tokens`."""
    script = _script(word)
    if not script:
        return word
    requested = _BY_LANGUAGE.get(language.partition("-")[0].lower(), script)
    algorithm = requested if _SCRIPT_OF_STEMMER.get(requested, "english") == script else script
    if algorithm == "english":
        word = bare(word)
    stemmed: str = _stemmer(algorithm).stemWord(word)
    return bare(stemmed) if script in {"english", "greek"} else stemmed


@lru_cache(maxsize=1 << 15)
def split_identifier(name: str) -> tuple[str, ...]:
    """Split a name at separators and case changes, casefolded and not stemmed.

    Return ``("get", "k8s", "pods")`` for ``getK8sPods``; empty without letters or digits.
    """
    chunks = _CHUNK.findall(normalize("NFKC", name).replace("_", " "))
    return tuple(part.casefold() for chunk in chunks for part in _humps(chunk))


def fold(text: str) -> str:
    """Normalize a label for comparison: without case, spaces, ``_`` and ``-``."""
    plain = (text if text.isascii() else normalize("NFKC", text)).casefold()
    return "".join(plain.replace("_", " ").replace("-", " ").split())


@lru_cache(maxsize=1 << 14)
def slug(label: str) -> str:
    """Make an identifier of *label* that keeps the letters of every script.

    ASCII symbols are percent-encoded (``c%2B%2B``). Spaces and punctuation become single hyphens. A
    long label is cut and gets a hash. A label of punctuation alone becomes a hash.
    """
    plain = normalize("NFC", normalize("NFC", label).casefold())
    spaced = "".join(mark if category(mark)[0] in "LMNS" or mark == "#" else " " for mark in plain)
    name = "-".join("".join(map(_quoted, spaced)).split())
    if name and len(name) <= _CACHED_CHARS * 2:
        return name
    digest = hashlib.sha256(plain.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{name[:_CACHED_CHARS]}-{digest}".lstrip("-")


def _quoted(mark: str) -> str:
    return mark if mark.isalnum() or mark == " " or not mark.isascii() else quote(mark)


def _tokens(chunk: str, language: str) -> tuple[Token, ...]:
    if chunk[0] in "'\u2019":
        return ()
    if chunk.isascii():
        return tuple(_spaced(chunk, language))
    words: list[Token] = []
    for unspaced, run in _runs().findall(chunk):
        words += _spaced(run, language)
        pairs = [unspaced[start : start + 2] for start in range(len(unspaced) - 1)] or [unspaced]
        words += (Token(surface=pair, parts=(pair,), spelt=(pair,)) for pair in pairs if pair)
    return tuple(words)


@cache
def _runs() -> re.Pattern[str]:
    # Compiled at first use, because that is slow and few texts need it.
    return re.compile(rf"([{_UNSPACED}]+)|([^{_UNSPACED}]+)")


_cached_tokens = lru_cache(maxsize=1 << 16)(_tokens)


def _spaced(run: str, language: str) -> Iterator[Token]:
    # A longer run of characters is not a word, so its beginning is enough.
    run = run[:_CACHED_CHARS].replace("\u200c", "").replace("\u200d", "")
    humps = [hump.casefold() for hump in _humps(run)]
    if humps:
        parts = tuple(stem(hump, language) for hump in humps)
        wholes = _wholes(humps, language)
        stop = len(humps) == 1 and humps[0] in _STOP_WORDS and language[:2] in {"", "en"}
        yield Token(surface=run, parts=parts, spelt=tuple(humps), wholes=wholes, stop=stop)


def _wholes(humps: list[str], language: str) -> tuple[str, ...]:
    if len(humps) > 1:
        return (stem("".join(humps), language),)
    numbered = _NUMBERED.fullmatch(humps[0])
    return (stem(numbered[1], language),) if numbered else ()


def _humps(chunk: str) -> list[str]:
    body = chunk.rstrip("+#")
    if len(body) == 1:
        return [chunk]
    if body.islower():
        return [body]
    cuts = [0, *(index for index in range(1, len(body)) if _is_hump(body, index)), len(body)]
    return [body[start:end] for start, end in pairwise(cuts) if start < end]


def _is_hump(body: str, at: int) -> bool:
    before, current, after = body[at - 1], body[at], body[at + 1 : at + 3]
    if not current.isupper():
        return False
    if before.isdigit():
        return len(after) > 0 and after[0].isalpha()
    if before.isupper():
        # HTTPServer is split into HTTP and Server, but URLs is not split.
        return after[:1].islower() and after != "s"
    return before.isalpha()


@lru_cache(maxsize=64)
def _stemmer(algorithm: str) -> Stemmer.Stemmer:
    return Stemmer.Stemmer(algorithm, 0)


def _script(word: str) -> str:
    letter = next((ord(mark) for mark in word if mark.isalpha()), 0)
    return next((name for first, last, name in _BY_SCRIPT if first <= letter <= last), "")


def bare(word: str) -> str:
    """Remove accents, so that ``resume`` matches ``résumé``."""
    if word.isascii():
        return word
    return "".join(mark for mark in normalize("NFD", word) if category(mark) != "Mn")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DocumentTokens:
    """Counted terms of one document, with the ids of one `Vocabulary`.

    The ids are int32 in bytes, so that an index can concatenate the ids of all documents.
    """

    entries: bytes
    """Pairs of int32, ascending by field: the id of a term, and count x (number of fields) +
    position of the field."""
    words: bytes
    """Ids of the written words of the document, as in `Vocabulary.words`."""
    languages: frozenset[str]


class Vocabulary:
    """Ids of the terms and words of many documents. Not thread-safe.

    *weights* are the weight of each indexed field, > 0, in the order of the fields' positions.
    """

    def __init__(self, weights: Mapping[str, float]) -> None:
        self.weights = weights
        self.terms: dict[str, int] = {}
        self.words: dict[tuple[str, int], int] = {}
        """Id of each pair of a written word and its term's id."""
        self._languages: dict[frozenset[str], frozenset[str]] = {}
        """Sets of languages, so that documents with equal sets share one object."""

    def tokenize(self, document: Fields) -> DocumentTokens:
        """Tokenize *document* and count its terms."""
        entries: list[tuple[int, int]] = []
        words: dict[int, None] = {}
        languages: set[str] = set()
        for number, name in enumerate(self.weights):
            counts: dict[int, int] = {}
            value = document.get(name, "")
            phrases = ((value, ""),) if isinstance(value, str) else value
            for text, language in phrases if value else ():
                languages.add(language)
                for token in tokens(text, language=language):
                    parts = [self._term(part) for part in token.parts]
                    for term in (*parts, *map(self._term, token.wholes)):
                        counts[term] = counts.get(term, 0) + 1
                    for pair in zip(token.spelt, parts, strict=True):
                        words[self.words.setdefault(pair, len(self.words))] = None
            width = len(self.weights)
            entries += ((term, count * width + number) for term, count in counts.items())
        found_languages = frozenset(languages)
        return DocumentTokens(
            entries=np.array(entries, dtype=np.int32).tobytes(),
            words=np.array(list(words), dtype=np.int32).tobytes(),
            languages=self._languages.setdefault(found_languages, found_languages),
        )

    def _term(self, term: str) -> int:
        return self.terms.setdefault(term, len(self.terms))


def spelt_words(
    counted: Sequence[DocumentTokens], vocabulary: Vocabulary, used: np.ndarray
) -> tuple[list[str], np.ndarray]:
    """Return all different `Token.spelt` words of the documents, and the row of each word's term.

    *used* are the ids of the terms in the index, ascending. The position of an id is its row.
    """
    numbers = concatenate_numbers([document.words for document in counted], 1)[:, 0]
    uses = np.bincount(numbers, minlength=len(vocabulary.words))
    spellings = list(vocabulary.words)
    pairs = [spellings[number] for number in np.flatnonzero(uses).tolist()]
    terms = np.fromiter((term for _, term in pairs), dtype=np.int32, count=len(pairs))
    return [word for word, _ in pairs], used.searchsorted(terms).astype(np.int32)


def concatenate_numbers(parts: Iterable[bytes], width: int) -> np.ndarray:
    """Return the int32 numbers in the bytes of *parts*, as rows of *width* numbers."""
    return np.frombuffer(b"".join(parts), np.int32).reshape(-1, width)


def stable_order(numbers: np.ndarray) -> np.ndarray:
    """Return the indices that sort *numbers*, int32 >= 0; equal numbers keep their order.

    Sorting 16 bits at a time takes linear time.
    """
    order = np.argsort((numbers & 0xFFFF).astype(np.uint16), kind="stable")
    if numbers.size and int(numbers.max()) > 0xFFFF:
        high = (numbers[order] >> 16).astype(np.uint16)
        order = order[np.argsort(high, kind="stable")]
    return order
