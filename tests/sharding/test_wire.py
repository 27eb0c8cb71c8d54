"""What travels between a coordinator and a part arrives as it was."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from gateway.index.vectors import Moments
from gateway.runtime.vectors import Sums
from gateway.search.query import Query
from gateway.sharding.values import QueryChoice, SurveyRequest
from gateway.sharding.wire import from_json, to_json
from gateway.types import Filters

REQUEST = SurveyRequest(
    key="k",
    queries=(
        Query(text="naïve \u2603").with_vectors(
            {"naïve \u2603": np.array([0.1, 1e-30, -0.0], np.float32)}
        ),
    ),
    filters=Filters(tags=frozenset({"a", "b"})),
    count=7,
    by_words=True,
)


def test_arrays_keep_their_shape_and_every_bit() -> None:
    (query,) = from_json(to_json(REQUEST), SurveyRequest).queries

    (sent,) = REQUEST.queries
    assert (1, 3) == query.vectors.texts.shape
    assert (0, 3) == query.vectors.clauses.shape
    assert sent.vectors.texts.tobytes() == query.vectors.texts.tobytes()
    assert sent.vectors.clause_weight == query.vectors.clause_weight


def test_sums_may_be_larger_than_64_bits() -> None:
    sums = Sums(count=3, total=-(1 << 70), squares=1 << 90)
    choice = QueryChoice(
        moments=Moments(strengths=sums), eligible=1, form=0, listed=np.array([5, 3], np.intp)
    )

    read = from_json(to_json(choice), QueryChoice)

    assert sums == read.moments.strengths
    assert [5, 3] == read.listed.tolist()
    assert np.intp == read.listed.dtype


@pytest.mark.parametrize("written", [None, 5, "AAAA", [[3], "AAAA"], [["x"], "AAAA"], [[1], "!"]])
def test_an_array_that_is_none_is_refused(written: object) -> None:
    """Nothing of it is used."""
    choice = QueryChoice(moments=Moments(), eligible=1, form=0, listed=np.zeros(1, np.intp))
    body = json.loads(to_json(replace(choice, eligible=2))) | {"listed": written}

    with pytest.raises(ValueError, match="listed"):
        from_json(json.dumps(body).encode(), QueryChoice)
