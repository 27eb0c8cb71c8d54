"""all-MiniLM-L6-v2 from the file in a wheel: it reads English, and no other language.

* The layers are run as the second encoder's are (`gateway.embed.body`).
* Words are split as BERT splits them (WordPiece, in lower case); the pieces are those of
  bert-base-uncased (Apache-2.0), packaged as text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from gateway.embed import body
from gateway.embed.body import Body, run_body, write_body
from gateway.embed.converted import converted
from gateway.embed.network import Layer, Linear, Network, Norm
from gateway.embed.onnxfile import Tensors, tensors
from gateway.runtime.vectors import Matrix, NDArray, Vector, unit_rows

MODEL = "minilm"
"""The name under which its middles are packaged."""
VERSION = 1
"""The version of what is made, raised when it would come out differently."""
FOLDERS = "minilm-int8-*"
"""Pattern of the folders of all versions."""
_WORDPIECES = Path(__file__).with_name("wordpieces.txt")
_UNKNOWN, _START, _END = "[UNK]", "[CLS]", "[SEP]"
_INSIDE = "##"
"""How each piece of a word but the first begins."""
_PIECES = 256
"""How many pieces the model was trained with at most, both ends included."""
_HEADS, _EPSILON = 12, 1e-12
_PARTS = 6
"""How many matrices a layer has; in the file: query, key, value, joined, inner, outer."""
_FOREIGN, _ENGLISH = 0.4, 0.7
"""The share of letters in whole words up to which a text is foreign, and from which it is English;
see `Pieces.english`."""
_UNKNOWN_LETTERS = 5
"""A word with letters that no piece has counts as so many letters."""


class Pieces:
    """Splits texts into the pieces that the encoder reads."""

    def __init__(self) -> None:
        from tokenizers import Tokenizer  # noqa: PLC0415  (an optional extra)
        from tokenizers.models import WordPiece  # noqa: PLC0415
        from tokenizers.normalizers import BertNormalizer  # noqa: PLC0415
        from tokenizers.pre_tokenizers import BertPreTokenizer  # noqa: PLC0415

        spelt = _WORDPIECES.read_text(encoding="utf-8").split("\n")
        numbers = {piece: number for number, piece in enumerate(spelt) if piece}
        self._read = Tokenizer(WordPiece(numbers, unk_token=_UNKNOWN))
        self._read.normalizer, self._read.pre_tokenizer = BertNormalizer(), BertPreTokenizer()
        self._ends = numbers[_START], numbers[_END]

    def __call__(self, text: str) -> Sequence[int]:
        """Give the numbers of the first pieces of *text*, at most 256, both ends included."""
        start, end = self._ends
        return [start, *self._read.encode(text).ids[: _PIECES - 2], end]

    def english(self, text: str) -> float:
        """Say how far *text* is English, 0 to 1, by how many of its letters stand in whole words.

        A model has a piece for each common word of its language, and splits words of others. Of
        English texts some 95 of 100 letters stand in whole words, of French ones 50, of most other
        languages fewer. Single letters and most names of products are no whole words. A text
        without a letter counts as English.
        """
        read = self._read.encode(text)
        pieces_of = Counter(read.word_ids)
        said = whole = 0
        for piece, word, (at, to) in zip(read.tokens, read.word_ids, read.offsets, strict=True):
            spelt = piece.removeprefix(_INSIDE)
            if not any(map(str.isalpha, text[at:to])):
                continue
            if piece == _UNKNOWN:
                said += _UNKNOWN_LETTERS
            else:
                said += len(spelt)
                whole += len(spelt) if pieces_of[word] == 1 < len(spelt) else 0
        share = whole / said if said else 1.0
        return min(max((share - _FOREIGN) / (_ENGLISH - _FOREIGN), 0.0), 1.0)


class Engine:
    """The encoder.

    Args:
        file: The weights, verified.
        cache: The folder in which what is made from them is kept.

    Raises:
        ModelFileError: If *file* holds no such weights.
    """

    def __init__(self, file: Path, cache: Path) -> None:
        self._pieces = Pieces()
        folder = converted(partial(_write, file), folder_in(cache), others=FOLDERS)
        self._body: Body = run_body(folder)

    def __call__(self, texts: Sequence[str]) -> Matrix:
        """Give one unit row for each text, shape (n, 384), as if each were alone in its pass."""
        return unit_rows(self._body(list(map(self._pieces, texts))))

    def trust(self, text: str) -> float:
        """Say how far *text* is English, 0 to 1; see `Pieces.english`."""
        return self._pieces.english(text)


def folder_in(cache: Path) -> Path:
    """Say where in *cache* this version's files are, or will be."""
    return body.folder_in(cache, FOLDERS, VERSION)


def network(file: Path) -> Network:
    """Give the layers that *file*, one that was verified, holds, in full precision.

    Raises:
        ModelFileError: If it holds no tensors at all.
    """
    found = tensors(file)
    kind = found["inner.embeddings.token_type_embeddings.weight"][0]
    # The matrices have numbers for names; their order is that of their use.
    matrices = [name[:-2] for name in found if name.startswith("val_") and name.endswith("_q")]
    parts = [matrices[at : at + _PARTS] for at in range(0, len(matrices), _PARTS)]
    return Network(
        heads=_HEADS,
        epsilon=_EPSILON,
        words=_widened(found, "inner.embeddings.word_embeddings.weight"),
        places=_widened(found, "inner.embeddings.position_embeddings.weight") + kind,
        begin=_norm(found, "inner.embeddings.LayerNorm"),
        layers=tuple(_layer(found, number, names) for number, names in enumerate(parts)),
    )


def _layer(found: Tensors, number: int, names: Sequence[str]) -> Layer:
    at = f"inner.encoder.layer.{number}."
    *seen, joined, inner, outer = (_widened(found, name).T for name in names)
    asked = [_bias(found, f"{at}attention.self.{part}") for part in ("query", "key", "value")]
    return Layer(
        attention=Linear(weight=np.concatenate(seen), bias=np.concatenate(asked)),
        joined=Linear(weight=joined, bias=_bias(found, f"{at}attention.output.dense")),
        between=_norm(found, f"{at}attention.output.LayerNorm"),
        inner=Linear(weight=inner, bias=_bias(found, f"{at}intermediate.dense")),
        outer=Linear(weight=outer, bias=_bias(found, f"{at}output.dense")),
        end=_norm(found, f"{at}output.LayerNorm"),
    )


def _widened(found: Tensors, name: str) -> Matrix:
    scales: NDArray[np.float32] = found[f"{name}_scale"]
    return np.asarray(found[f"{name}_q"] * scales, dtype=np.float32)


def _norm(found: Tensors, name: str) -> Norm:
    return Norm(weight=found[f"{name}.weight"], bias=_bias(found, name))


def _bias(found: Tensors, name: str) -> Vector:
    return np.asarray(found[f"{name}.bias"], dtype=np.float32)


def _write(file: Path, folder: Path) -> None:
    write_body(network(file), MODEL, folder)
