"""Where the activations of the second encoder lie, made from texts of our own.

    python -m benchmarks.middles --out gateway/embed/middles.npz

Over the texts of `benchmarks.background`: what the layers make of them, computed here in full
precision (Vaswani et al. 2017, arXiv 1706.03762; norms after each part, as in BERT). Of what goes
into a layer's attention it is the middle between the rare values on either side, of what goes into
its inner layer the mean: of either, what leaves the least error in 8 bits.
"""

from __future__ import annotations

import math
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from benchmarks.background import TEXTS
from gateway.embed.body import WIDTH
from gateway.embed.e5 import PREFIX
from gateway.embed.models import E5, E5_FILE
from gateway.embed.pieces import Pieces, write_pieces
from gateway.embed.weights import Weights, opened, widened
from gateway.vectors import Matrix, Vector

_RARE = 0.05
_erf = np.vectorize(math.erf, otypes=[np.float32])


class Layers:
    """The layers of *weights*, in full precision."""

    def __init__(self, weights: Weights) -> None:
        self._weights = weights
        self._wide: dict[str, Matrix] = {}
        places = weights.vector("emb.pos").reshape(-1, WIDTH)
        self._places = places + weights.vector("emb.type")[:WIDTH]

    def inputs(self, pieces: Sequence[int]) -> Iterator[tuple[str, Matrix]]:
        """Give what goes into each attention and each inner layer, shape (n, 384), by its name.

        What comes out of the last layer is the last of them, by the name ``out``.
        """
        weights = self._weights
        words = widened(weights.blocks("emb.word", WIDTH)[list(pieces)])
        x = self._norm(words + self._places[: len(pieces)], "emb.ln")
        for number in range(weights.layers):
            at = f"l{number}."
            yield f"{at}qkv", x
            x = self._norm(x + self._linear(self._seen(x, at), f"{at}ao"), f"{at}aln")
            yield f"{at}fi", x
            inner = self._linear(x, f"{at}fi")
            bent = inner * (1 + _erf(inner / np.sqrt(2))) / 2
            x = self._norm(x + self._linear(bent, f"{at}fo", 4 * WIDTH), f"{at}oln")
        yield "out", x

    def _seen(self, x: Matrix, at: str) -> Matrix:
        heads = self._weights.heads
        asked, offered, told = (
            self._linear(x, f"{at}{part}").reshape(len(x), heads, -1).swapaxes(0, 1)
            for part in "qkv"
        )
        near = np.exp(asked @ offered.swapaxes(1, 2) / np.sqrt(WIDTH / heads))
        seen: Matrix = (near / near.sum(axis=2, keepdims=True)) @ told
        return seen.swapaxes(0, 1).reshape(len(x), WIDTH)

    def _linear(self, x: Matrix, name: str, width: int = WIDTH) -> Matrix:
        if name not in self._wide:
            self._wide[name] = widened(self._weights.blocks(f"{name}.w", width)).T
        return x @ self._wide[name] + self._weights.vector(f"{name}.b")

    def _norm(self, x: Matrix, name: str) -> Matrix:
        away = x - x.mean(axis=1, keepdims=True)
        scale = np.sqrt(np.square(away).mean(axis=1, keepdims=True) + self._weights.epsilon)
        weights = self._weights
        scaled: Matrix = away / scale * weights.vector(f"{name}.w")
        return scaled + weights.vector(f"{name}.b")


def middles(texts: Sequence[str]) -> Mapping[str, Vector]:
    """Give the middle of the activations over *texts*, shape (384,), by what they go into.

    Raises:
        RuntimeError: If the encoder is not installed.
    """
    folder = E5.found()
    if folder is None:
        raise RuntimeError("the second encoder is not installed: install the extra 'local'")
    weights = opened(folder / E5_FILE)
    layers, found = Layers(weights), defaultdict[str, list[Matrix]](list)
    with tempfile.TemporaryDirectory() as place:
        write_pieces(weights, Path(place))
        read = Pieces(weights, Path(place))
        for text in texts:
            pieces = [weights.start, *read(PREFIX + text), weights.end]
            for name, rows in layers.inputs(pieces):
                found[name].append(rows)
    return {name: _middle(name, np.concatenate(rows)) for name, rows in found.items()}


def _middle(name: str, rows: Matrix) -> Vector:
    told = np.quantile(rows, (_RARE, 1 - _RARE), axis=0) if name.endswith("qkv") else rows
    middle: Vector = told.mean(axis=0)
    return middle


def main(out: Annotated[Path, typer.Option(help="Where they go, as .npz.")]) -> None:
    """Compute them and write them, in half precision."""
    found = middles(TEXTS.read_text(encoding="utf-8").splitlines())
    told = {name: middle.astype(np.float16) for name, middle in found.items() if name != "out"}
    np.savez_compressed(out, allow_pickle=False, **told)


if __name__ == "__main__":
    typer.run(main)
