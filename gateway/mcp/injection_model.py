"""Linear classifier that separates instructions to a model from text about a tool. Pure.

The features of a sentence are its character n-grams, its words, and pairs of nearby stems. Each
feature is hashed to a weight. The weights are summed and divided by the square root of the number
of features, once for character features and once for word features. The score is the sum of both.
The best sentence or the best two adjacent sentences count, so that a long honest text cannot hide
an instruction.

`injection_weights.md` describes the training.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from gateway.runtime.text import normalize, visible

MIN_WORDS = 4
"""Minimum number of words of a scored sentence, or of two adjacent sentences."""
BITS = 18
"""Binary logarithm of the size of each of the two tables of weights (for characters, for words)."""
MIN_FEATURES = (100, 40)
"""Minimum numbers of features (of characters, of words) in the divisor of a score, because short
sentences have little evidence."""
_CHAR_SIZES = (2, 3, 4, 5)
_WORD_GAPS = (1, 2, 3, 4, 5)
_STEM_CHARS = 5
_MAX_CHARS = 300
_STEP_CHARS = 200
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_MIXER = np.uint64(0xC2B2AE3D27D4EB4F)

_PUNCTUATION = " .,;:!?-*#|`\u2022\u3002\uff01\uff1f\uff1b\u061f\u0964"
_LOOKALIKES = str.maketrans(
    "\u0430\u0432\u0441\u0501\u0435\u04bb\u0456\u0458\u04cf\u043e\u0440\u051b\u0455\u0442"
    "\u051d\u0445\u0443\u043a\u043c\u043d\u03bf\u03c1\u03b9\u03bd\u03c4\u03ba",
    "abcdehijlopqstwxykmhopivtk",
)
_HOST = re.compile(r"(://|@)[\w-]+(?:\.[\w-]+)+")
_WORD = re.compile("[\u3040-\u30ff\u3400-\u9fff]|[^\\W\u3040-\u30ff\u3400-\u9fff]+")
"""Pattern of a word. Each Chinese or Japanese character is a word, because these languages are
written without spaces."""
_JOINERS = "[\u200c\u200d\ufe0e\ufe0f]"
_TWO_SCRIPTS = re.compile("[a-z\u0370-\u03ff\u0400-\u052f]{3,}")
_SENTENCE_END = re.compile(
    "(?<=[.!?;:])\\s+|(?<=[\u3002\uff01\uff1f\uff1b\u061f\u0964])\\s*|\\s*\\n\\s*"
)
_THREE_LETTERS = re.compile(r"(?:[^\W\d_][^\n]*){3}")

Features = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]
"""Two arrays with one item per feature: index of the feature's weight, index of its sentence."""


def fold(text: str) -> str:
    """Return *text* in the form that the classifier reads.

    It is in lower case, without invisible characters, and with look-alike letters, digits and host
    names replaced.
    """
    text = normalize("NFKC", text)[: 2 * len(text)]
    text = _HOST.sub(r"\1host", re.sub(_JOINERS, "", visible(text)))
    text = text.replace("<", " <").replace(">", "> ")
    text = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text).casefold().replace("_", " ")
    if not text.isascii():
        text = _TWO_SCRIPTS.sub(_replace_lookalikes, text)
    text = re.sub(r"\b(\w) (?=\w\b)", r"\1", re.sub(r"\d+", "0", text))
    return re.sub(r"(\W)\1{2,}", r"\1\1", text)


def _replace_lookalikes(word: re.Match[str]) -> str:
    return word[0].translate(_LOOKALIKES) if re.search("[a-z]", word[0]) else word[0]


def split_sentences(text: str) -> list[str]:
    """Return the distinct sentences of *text*, each in the form of `fold`.

    Long sentences are returned in overlapping pieces, very short ones are left out.
    """
    parts = _SENTENCE_END.split(fold(text))
    sentences = dict.fromkeys(" ".join(part.split()).strip(_PUNCTUATION) for part in parts)
    return [
        sentence[start : start + _MAX_CHARS]
        for sentence in sentences
        if _THREE_LETTERS.search(sentence)
        for start in range(0, max(len(sentence) - _MAX_CHARS + _STEP_CHARS, 1), _STEP_CHARS)
    ]


def count_words(sentence: str) -> int:
    """Return the number of words. Each Chinese or Japanese character is a word."""
    return len(_WORD.findall(sentence))


def hash_features(sentences: Sequence[str]) -> tuple[Features, Features]:
    """Return the character features and the word features of *sentences*."""
    text = "".join(f" {sentence} \n" for sentence in sentences)
    codes = np.frombuffer(text.encode("utf-32-le", "replace"), np.uint32).astype(np.uint64)
    owner = np.cumsum(codes == ord("\n"))
    hashed, characters = codes * _MULTIPLIER, []
    for size in _CHAR_SIZES:
        hashed = (hashed[:-1] ^ (hashed[:-1] >> np.uint64(29))) * _MIXER
        hashed += codes[size - 1 :] * _MULTIPLIER
        inside = owner[: len(hashed)] == owner[size - 1 :]
        characters.append((hashed[inside], owner[: len(hashed)][inside]))
    listed = [_WORD.findall(sentence) for sentence in sentences]
    index = np.repeat(np.arange(len(listed)), [len(words) for words in listed])
    whole = _hash_words([word for words in listed for word in words])
    stems = _hash_words([word[:_STEM_CHARS] for words in listed for word in words])
    words = [(whole * _MIXER, index)]
    for gap in _WORD_GAPS:
        inside = index[:-gap] == index[gap:]
        pairs = (stems[:-gap] * _MIXER * _MIXER + stems[gap:])[inside]
        words.append((pairs, index[gap:][inside]))
    return _to_buckets(characters), _to_buckets(words)


def _hash_words(words: Sequence[str]) -> npt.NDArray[np.uint64]:
    hashes = (zlib.crc32(word.encode("utf-8", "replace")) for word in words)
    return np.fromiter(hashes, np.uint64, len(words)) * np.uint64(0x100000001) + np.uint64(0x9E37)


def _to_buckets(parts: Sequence[tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]]) -> Features:
    hashes = np.concatenate([part for part, _ in parts])
    buckets = ((hashes ^ (hashes >> np.uint64(32))) * _MULTIPLIER) >> np.uint64(64 - BITS)
    return buckets.astype(np.int64), np.concatenate([owners for _, owners in parts])


def score_order(sentences: Sequence[str]) -> float:
    """Return how much *sentences* look like instructions to a model; above 0 means an instruction.

    The best sentence or pair of adjacent sentences with `MIN_WORDS` words counts. The score is
    minus infinity if all are shorter.
    """
    if not sentences:
        return -np.inf
    weights, bias = _load_weights()
    words = np.array([count_words(sentence) for sentence in sentences])
    scores = np.zeros((2, len(sentences)))
    for features, block, least in zip(hash_features(sentences), weights, MIN_FEATURES, strict=True):
        buckets, owners = features
        sums = np.bincount(owners, block[buckets], len(sentences))
        numbers = np.bincount(owners, minlength=len(sentences))
        scores[0] += sums / np.sqrt(np.maximum(numbers, least))
        pairs = numbers[:-1] + numbers[1:]
        scores[1, 1:] += (sums[:-1] + sums[1:]) / np.sqrt(np.maximum(pairs, least))
    scores[0, words < MIN_WORDS] = -np.inf
    scores[1, 1:][words[:-1] + words[1:] < MIN_WORDS] = -np.inf
    scores[1, 0] = -np.inf
    return float(scores.max()) + bias


@cache
def _load_weights() -> tuple[npt.NDArray[np.float32], float]:
    with np.load(Path(__file__).with_name("injection_weights.npz")) as stored:
        return stored["weights"].astype(np.float32) * stored["scale"], float(stored["bias"])
