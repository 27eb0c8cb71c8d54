"""The requests and answers of a part of a catalog as JSON; arrays of numbers as base64."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
from msgspec.json import Decoder, Encoder

from gateway.index.statistics import CatalogStatistics
from gateway.sharding.values import (
    DetailsAnswer,
    DetailsRequest,
    Overview,
    OverviewRequest,
    SurveyAnswer,
    SurveyRequest,
)

PATH = "/api/part"
"""Below it stands one address for each operation: the name of a method of `Part`."""
CHANGED = 409
"""The status of an answer that is `PartChangedError`."""
_WRITTEN = {np.intp: "<i4", np.float32: "<f4"}
"""How the numbers of an array are written, by their type."""


def _write(array: np.ndarray) -> tuple[tuple[int, ...], str]:
    numbers = array.astype(_WRITTEN[array.dtype.type])
    return array.shape, b64encode(numbers.tobytes()).decode()


def _read(kind: Any, written: Any) -> np.ndarray:
    (number,) = get_args(get_args(kind)[1])
    shape, text = written
    return np.frombuffer(b64decode(text), _WRITTEN[number]).astype(number).reshape(shape)


to_json = Encoder(enc_hook=_write).encode


@dataclass(frozen=True, slots=True)
class PartOperation:
    """What one method of `Part` takes and returns; both read a body, or raise a ValueError."""

    request: Decoder[Any]
    answer: Decoder[Any]


def _operation(request: Any, answer: Any) -> PartOperation:
    return PartOperation(Decoder(request, dec_hook=_read), Decoder(answer, dec_hook=_read))


OPERATIONS: Mapping[str, PartOperation] = {
    "statistics": _operation(None, CatalogStatistics),
    "adopt": _operation(CatalogStatistics, None),
    "overview": _operation(OverviewRequest, Overview),
    "survey": _operation(SurveyRequest, SurveyAnswer),
    "details": _operation(DetailsRequest, DetailsAnswer),
}
"""By the name of the method."""
