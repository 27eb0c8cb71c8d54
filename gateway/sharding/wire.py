"""The requests and answers of a part of a catalog as JSON; arrays of numbers as base64."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Any, TypeVar, get_args

import numpy as np
from msgspec.json import decode, encode

from gateway.index.statistics import CatalogStatistics
from gateway.sharding.values import DetailsRequest, OverviewRequest, SurveyRequest

T = TypeVar("T")
PATH = "/api/part"
"""Below it stands one address for each of `REQUESTS`."""
CHANGED = 409
"""The status of an answer that is `PartChangedError`."""
REQUESTS: Mapping[str, type[Any]] = {
    "statistics": type(None),
    "adopt": CatalogStatistics,
    "overview": OverviewRequest,
    "survey": SurveyRequest,
    "details": DetailsRequest,
}
"""What each method of `Part` takes, by its name."""
_WRITTEN = {np.intp: "<i4", np.float32: "<f4"}
"""How the numbers of an array are written, by their type."""


def _write(array: np.ndarray) -> tuple[tuple[int, ...], str]:
    numbers = array.astype(_WRITTEN[array.dtype.type])
    return array.shape, b64encode(numbers.tobytes()).decode()


def _read(kind: Any, written: Any) -> np.ndarray:
    (number,) = get_args(get_args(kind)[1])
    shape, text = written
    return np.frombuffer(b64decode(text), _WRITTEN[number]).astype(number).reshape(shape)


def to_json(value: object) -> bytes:
    """Return the body that says *value*."""
    return encode(value, enc_hook=_write)


def from_json(body: bytes, kind: type[T]) -> T:
    """Return the value of the type *kind* that *body* says.

    Raises:
        ValueError: It says none.
    """
    return decode(body, type=kind, dec_hook=_read)
