"""Arrays of numbers as values of PostgreSQL's statements, in its own form."""

from __future__ import annotations

import struct

import numpy as np

from gateway.errors import MissingExtraError
from gateway.runtime.vectors import NDArray, Vector

try:
    import psycopg
    from psycopg.adapt import Dumper
    from psycopg.pq import Format
except ImportError as error:
    raise MissingExtraError("vectors in PostgreSQL", "postgres") from error

Ids = NDArray[np.int64]


class _Ids(bytes):
    """``bigint[]`` in PostgreSQL's own form: psycopg would write number by number."""


class _Reals(bytes):
    """``real[]``, likewise."""


def dump_ids(ids: Ids) -> bytes:
    """Return *ids* as a value of a statement, a ``bigint[]``."""
    return _Ids(_array(ids, ">i8", 20))


def dump_reals(row: Vector) -> bytes:
    """Return *row* as a value of a statement, a ``real[]``."""
    return _Reals(_array(row, ">f4", 700))


def _array(values: np.ndarray, kind: str, element: int) -> bytes:
    cells = np.empty(len(values), dtype=[("size", ">i4"), ("value", kind)])
    cells["size"], cells["value"] = int(kind[-1]), values
    return struct.pack("!5i", 1, 0, element, len(values), 1) + cells.tobytes()


class _IdsDumper(Dumper):
    format, oid = Format.BINARY, 1016

    def dump(self, obj: bytes) -> bytes:
        return obj


class _RealsDumper(_IdsDumper):
    oid = 1021


psycopg.adapters.register_dumper(_Ids, _IdsDumper)
psycopg.adapters.register_dumper(_Reals, _RealsDumper)
