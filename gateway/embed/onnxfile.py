"""The tensors of an ONNX file, and nothing else of it.

protobuf reads the file by the numbers of the few fields that are wanted (onnx.proto3, IR version
10): a library of thirty megabytes is not needed for that.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from gateway.errors import ModelFileError
from gateway.runtime.vectors import NDArray

Tensors: TypeAlias = Mapping[str, NDArray[Any]]
"""By name, in the order of the file."""
_KINDS: Mapping[int, str] = {1: "<f4", 3: "<i1", 7: "<i8"}
"""What ONNX calls the types of numbers that are read."""
_REPEATED, _ONE = 3, 1
_INT64, _INT32, _STRING, _MESSAGE, _BYTES = 3, 5, 9, 11, 12
_MESSAGES: Mapping[str, tuple[tuple[str, int, int, int, str], ...]] = {
    "Tensor": (
        ("dims", 1, _REPEATED, _INT64, ""),
        ("data_type", 2, _ONE, _INT32, ""),
        ("name", 8, _ONE, _STRING, ""),
        ("raw_data", 9, _ONE, _BYTES, ""),
    ),
    "Graph": (("initializer", 5, _REPEATED, _MESSAGE, "Tensor"),),
    "Model": (("graph", 7, _ONE, _MESSAGE, "Graph"),),
}
"""Each message's fields: name, number, how many, type, which message."""


def tensors(path: Path) -> Tensors:
    """Give the stored tensors of the file at *path*, by their names, in the file's order.

    Tensors of other types than float32, int8 and int64 are left out.

    Raises:
        ModelFileError: If it is no such file.
    """
    from google.protobuf.message import DecodeError  # noqa: PLC0415  (an optional extra)

    model = _model()
    try:
        model.ParseFromString(path.read_bytes())
        told = list(model.graph.initializer)
    except DecodeError:
        told = []
    if not told:
        raise ModelFileError(f"{path.name!r} holds no tensors that can be read")
    return {
        each.name: np.frombuffer(each.raw_data, _KINDS[each.data_type]).reshape(list(each.dims))
        for each in told
        if each.data_type in _KINDS and each.raw_data
    }


def _model() -> Any:
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory  # noqa: PLC0415

    file = descriptor_pb2.FileDescriptorProto(name="tensors.proto", package="tensors")
    for message, fields in _MESSAGES.items():
        made = file.message_type.add(name=message)
        for name, number, label, kind, of in fields:
            kept = {"type_name": f".tensors.{of}"} if of else {}
            made.field.add(name=name, number=number, label=label, type=kind, **kept)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("tensors.Model"))()
