"""One query in all its forms: texts, clauses, vectors."""

from __future__ import annotations

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
