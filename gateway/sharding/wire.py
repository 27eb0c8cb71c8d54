"""The requests and answers of a part of a catalog as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter

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


@dataclass(frozen=True, slots=True, kw_only=True)
class PartOperation:
    """What one method of `Part` takes and returns."""

    request: TypeAdapter[Any]
    answer: TypeAdapter[Any]


def _operation(request: Any, answer: Any) -> PartOperation:
    return PartOperation(request=TypeAdapter(request), answer=TypeAdapter(answer))


OPERATIONS: Mapping[str, PartOperation] = {
    "statistics": _operation(None, CatalogStatistics),
    "adopt": _operation(CatalogStatistics, None),
    "overview": _operation(OverviewRequest, Overview),
    "survey": _operation(SurveyRequest, SurveyAnswer),
    "details": _operation(DetailsRequest, DetailsAnswer),
}
"""By the name of the method."""
