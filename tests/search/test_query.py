"""One query in all its forms: texts, clauses, vectors."""

from __future__ import annotations

import numpy as np

from gateway.search.query import Query, split_clauses

LONG = (
    "Please do all of these for me today. convert the length of the reactor. convert the weight of "
    "the catalyst. note the comment of the author. convert the volume of the tank"
)


def test_a_query_has_all_its_forms() -> None:
    """Rules 6 and 7: both texts for vectors, the English one for the graph, each with context."""
    query = Query(text="лист", english="email", context="for Bob", clauses=("a b c",))

    assert ("лист. for Bob", "email. for Bob", "a b c") == query.texts_to_embed
    assert "email. for Bob" == query.graph_text
    assert ("лист", "email") == query.confidence_texts


def test_a_context_alone_is_what_confidence_is_measured_on() -> None:
    """There is nothing else."""
    query = Query(text="", context="for Bob")

    assert ("for Bob",) == query.texts == query.confidence_texts
    assert "for Bob" == query.graph_text


def test_vectors_are_those_of_the_texts_and_of_the_clauses() -> None:
    """Clauses add to the strength, texts are the cosine."""
    rows = {"q": np.ones(2, np.float32), "c": np.zeros(2, np.float32)}
    with_clause = Query(text="q", clauses=("c",)).with_vectors(rows).vectors
    without = Query(text="q").with_vectors(rows).vectors

    assert [(1, 2), (1, 2)] == [with_clause.texts.shape, with_clause.clauses.shape]
    assert [(1, 2), (0, 2)] == [without.texts.shape, without.clauses.shape]
    assert 0.7 == with_clause.clause_weight


def test_a_corrected_clause_counts_once() -> None:
    """Clauses are counted as written or as corrected, not both; both are embedded."""
    misspelt = LONG.replace("convert", "convrt")

    query = Query(text=misspelt, corrected=LONG).split()

    assert 5 == query.clause_count
    assert {*split_clauses(misspelt), *split_clauses(LONG)} == set(query.clauses)
    assert (split_clauses(LONG), 5) == (Query(text=LONG).split().clauses, 5)
    assert ((), 0) == (
        Query(text="short").split().clauses,
        Query(text="short").split().clause_count,
    )
