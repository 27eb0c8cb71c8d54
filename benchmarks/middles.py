"""Where the activations of the encoders with layers lie, made from texts of our own.

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
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from benchmarks.background import TEXTS
from gateway.embed import e5, minilm
from gateway.embed.models import E5, E5_FILE, MINILM, MINILM_FILE, Model
from gateway.embed.network import Linear, Network, Norm
from gateway.embed.pieces import Pieces, write_pieces
from gateway.embed.weights import network, opened
from gateway.runtime.vectors import Matrix, Vector

_RARE = 0.05
_erf = np.vectorize(math.erf, otypes=[np.float32])
Split = Callable[[str], Sequence[int]]
"""A text -> the numbers of its pieces, both ends among them."""


class Layers:
    """The layers of *network*, in full precision."""

    def __init__(self, network: Network) -> None:
        self._network = network

    def inputs(self, pieces: Sequence[int]) -> Iterator[tuple[str, Matrix]]:
        """Give what goes into each attention and each inner layer, shape (n, d), by its name.

        What comes out of the last layer is the last of them, by the name ``out``.
        """
        known = self._network
        x = self._norm(known.words[list(pieces)] + known.places[: len(pieces)], known.begin)
        for number, layer in enumerate(known.layers):
            yield f"{number}.attention", x
            seen = self._seen(_linear(x, layer.attention))
            x = self._norm(x + _linear(seen, layer.joined), layer.between)
            yield f"{number}.inner", x
            inner = _linear(x, layer.inner)
            bent = inner * (1 + _erf(inner / np.sqrt(2))) / 2
            x = self._norm(x + _linear(bent, layer.outer), layer.end)
        yield "out", x

    def _seen(self, parts: Matrix) -> Matrix:
        heads, width = self._network.heads, self._network.width
        asked, offered, told = (
            part.reshape(len(part), heads, -1).swapaxes(0, 1) for part in np.split(parts, 3, axis=1)
        )
        near = np.exp(asked @ offered.swapaxes(1, 2) / np.sqrt(width / heads))
        seen: Matrix = (near / near.sum(axis=2, keepdims=True)) @ told
        return seen.swapaxes(0, 1).reshape(-1, width)

    def _norm(self, x: Matrix, norm: Norm) -> Matrix:
        away = x - x.mean(axis=1, keepdims=True)
        scale = np.sqrt(np.square(away).mean(axis=1, keepdims=True) + self._network.epsilon)
        scaled: Matrix = away / scale * norm.weight
        return scaled + norm.bias


def _linear(x: Matrix, linear: Linear) -> Matrix:
    return x @ linear.weight.T + linear.bias


def middles(network: Network, split: Split, texts: Sequence[str]) -> Mapping[str, Vector]:
    """Give the middle of the activations over *texts*, shape (d,), by what they go into."""
    layers, found = Layers(network), defaultdict[str, list[Matrix]](list)
    for text in texts:
        for name, rows in layers.inputs(split(text)):
            found[name].append(rows)
    return {
        name: _middle(name, np.concatenate(rows)) for name, rows in found.items() if name != "out"
    }


def second() -> tuple[Network, Split]:
    """Give the layers of multilingual-e5, and what splits its texts.

    Raises:
        RuntimeError: If it is not installed.
    """
    weights = opened(_file(E5, E5_FILE))
    with tempfile.TemporaryDirectory() as place:
        write_pieces(weights, Path(place))
        read = Pieces(weights, Path(place))
    return network(weights), lambda text: [weights.start, *read(e5.PREFIX + text), weights.end]


def third() -> tuple[Network, Split]:
    """Give the layers of all-MiniLM, and what splits its texts; raises as `second` does."""
    file = _file(MINILM, MINILM_FILE)
    return minilm.network(file), minilm.Pieces()


def _file(model: Model, name: str) -> Path:
    folder = model.found()
    if folder is None:
        raise RuntimeError(f"{model.package} is not installed: install the extra 'local'")
    return folder / name


def _middle(name: str, rows: Matrix) -> Vector:
    rare = (_RARE, 1 - _RARE)
    told = np.quantile(rows, rare, axis=0) if name.endswith("attention") else rows
    middle: Vector = told.mean(axis=0)
    return middle


ENCODERS: Mapping[str, Callable[[], tuple[Network, Split]]] = {
    e5.MODEL: second,
    minilm.MODEL: third,
}
"""By what name their middles are packaged."""


def main(out: Annotated[Path, typer.Option(help="Where they go, as .npz.")]) -> None:
    """Compute them and write them, in half precision."""
    texts = TEXTS.read_text(encoding="utf-8").splitlines()
    found = {
        f"{model}.{name}": middle.astype(np.float16)
        for model, encoder in ENCODERS.items()
        for name, middle in middles(*encoder(), texts).items()
    }
    np.savez_compressed(out, allow_pickle=False, **found)


if __name__ == "__main__":
    typer.run(main)
