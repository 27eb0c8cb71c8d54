"""Words and servers of hidden entities, which diagnostics must not reveal."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gateway.options import SearchOptions
from gateway.plugins.spelling import SpellingCorrector, find_word_lists
from gateway.search import Search
from gateway.search.results import unmatched_terms
from gateway.testing import HashingEmbedder
from gateway.types import Diagnostic, Filters, Hints, SearchResult
from tests.core.search.conftest import run, snapshot_of
from tests.fakes import codes, entity, plain_embed, tool

EMBEDDER = HashingEmbedder()
OPEN = entity(tool("send_letter", "Send a letter to a customer."), server="desk")
HIDDEN = entity(
    tool("open_vault", "Open the zorblaxion, colleague.", hints=Hints(enabled=False)),
    server="vault",
)
EVERYBODY = Filters(include_disabled=True)


def run_query(query: str, filters: Filters, *notes: Diagnostic, floor: float = 0) -> SearchResult:
    search = Search(
        options=SearchOptions(no_match_confidence=floor),
        strategy="auto",
        embed=plain_embed(EMBEDDER),
        correct=SpellingCorrector(find_word_lists()),
    )
    snapshot = replace(snapshot_of([OPEN, HIDDEN], EMBEDDER), diagnostics=notes)
    return run(search, snapshot, query, filters=filters)


def test_query_is_not_corrected_to_a_word_of_hidden_entities() -> None:
    """The diagnostic would reveal the word. Callers that may see the entity get the correction."""
    plain = run_query("open the zorblaxoin", EVERYBODY)
    closed = run_query("open the zorblaxoin", Filters())
    other = run_query("send a leter to a custmer", Filters())

    assert "zorblaxoin → zorblaxion" in [note.detail for note in plain.diagnostics]
    assert "zorblaxion" not in str(closed)
    assert "query_mended" in codes(other)


@pytest.mark.skipif(find_word_lists() is None, reason="needs the word lists of the extra local")
def test_query_is_corrected_to_a_word_of_the_language() -> None:
    """Even if a hidden entity contains the word too."""
    result = run_query("send a letter to my collegue", Filters())

    assert "collegue → colleague" in [note.detail for note in result.diagnostics]


def test_word_of_hidden_entities_counts_as_unmatched() -> None:
    """Otherwise its absence from the list would reveal it."""
    index = snapshot_of([OPEN, HIDDEN]).lexical
    readings = [index.analyze("zorblaxion letter"), index.analyze("qqq zorblaxion")]
    everybody, nobody_hidden = np.array([True, True]), np.array([False, True])

    assert ("qqq",) == unmatched_terms(index, readings, everybody)
    assert ("zorblaxion", "qqq") == unmatched_terms(index, readings, nobody_hidden)
    assert ("zorblaxion",) == run_query("zorblaxion", Filters(), floor=1).unmatched


@pytest.mark.parametrize(
    ("filters", "told"),
    [
        (EVERYBODY, ["'desk': x", "'vault': x", "y"]),
        (Filters(), ["'desk': x", "", "y"]),
        (Filters(servers=frozenset({"desk"})), ["'desk': x", "", "y"]),
        (Filters(servers=frozenset({"none"})), ["", "", "y"]),
    ],
)
def test_diagnostics_omit_the_names_of_servers_that_filters_exclude(
    filters: Filters, told: list[str]
) -> None:
    """The diagnostic itself remains."""
    notes = [
        Diagnostic(stage="catalog", code="source_load_failed", detail="'desk': x"),
        Diagnostic(stage="catalog", code="source_load_failed", detail="'vault': x"),
        Diagnostic(stage="embed", code="vectors_incomplete", detail="y"),
        Diagnostic(stage="catalog", code="name_qualified", detail="'vault' became"),
    ]
    result = run_query("send a letter", filters, *notes)

    assert told == [note.detail for note in result.diagnostics[:3]]
    assert "name_qualified" not in codes(result)
