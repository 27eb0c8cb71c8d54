"""How much of a name a query states."""

from __future__ import annotations

import numpy as np
import pytest

from gateway.index.name_terms import NameTerms
from graphs.lexical.bm25_index import Postings

WEIGHTS = {"name": 1.0, "description": 1.0}
CATALOG = (
    {"name": "return order", "description": "Return an item of an order, and track the return."},
    {"name": "track parcel", "description": "Where it is."},
    {"name": "", "description": "Without a name."},
)


@pytest.fixture
def index() -> Postings:
    return Postings.build(CATALOG, weights=WEIGHTS)


@pytest.mark.parametrize(
    ("query", "whole"),
    [("return my order", [0]), ("track the parcel", [1]), ("without a name", []), ("", [])],
)
def test_a_name_is_stated_whole_by_all_its_words(
    index: Postings, query: str, whole: list[int]
) -> None:
    """In any order, with others between them; nothing states a name that has no words."""
    shares = NameTerms.of(index).stated(index.match(query))

    assert whole == np.flatnonzero(shares > 0.999).tolist()


def test_a_word_is_of_the_name_wherever_else_it_stands(index: Postings) -> None:
    """A description that says it oftener takes nothing from the name."""
    shares = NameTerms.of(index).stated(index.match("my order"))

    assert 0.0 < shares[0] < 0.9
    assert [0.0, 0.0] == shares[1:].tolist()


def test_without_a_field_of_names_nothing_is_stated() -> None:
    index = Postings.build(CATALOG, weights={"description": 1.0})

    assert not NameTerms.of(index).stated(index.match("return order")).any()
