"""Words and servers that only hidden entities know are not told."""

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


def looked(query: str, filters: Filters, *notes: Diagnostic, floor: float = 0) -> SearchResult:
    search = Search(
        options=SearchOptions(no_match_confidence=floor),
        strategy="auto",
        embed=plain_embed(EMBEDDER),
        correct=SpellingCorrector(find_word_lists()),
    )
    snapshot = replace(snapshot_of([OPEN, HIDDEN], EMBEDDER), diagnostics=notes)
    return run(search, snapshot, query, filters=filters)


def test_no_word_is_mended_to_one_that_only_the_hidden_hold() -> None:
    """The note would name it; who may see everybody is helped as ever."""
    plain = looked("open the zorblaxoin", EVERYBODY)
    closed = looked("open the zorblaxoin", Filters())
    own = looked("send a leter to a custmer", Filters())

    assert "zorblaxoin → zorblaxion" in [note.detail for note in plain.diagnostics]
    assert "zorblaxion" not in str(closed)
    assert "query_mended" in codes(own)


@pytest.mark.skipif(find_word_lists() is None, reason="needs the word lists of the extra local")
def test_a_word_of_the_language_is_nobodys_secret() -> None:
    """Whoever else holds it."""
    found = looked("send a letter to my collegue", Filters())

    assert "collegue → colleague" in [note.detail for note in found.diagnostics]


def test_a_word_that_only_the_hidden_hold_is_one_that_nobody_holds() -> None:
    """Or else its absence from the list would tell."""
    index = snapshot_of([OPEN, HIDDEN]).lexical
    readings = [index.analyze("zorblaxion letter"), index.analyze("qqq zorblaxion")]
    everybody, nobody_hidden = np.array([True, True]), np.array([False, True])

    assert ("qqq",) == unmatched_terms(index, readings, everybody)
    assert ("zorblaxion", "qqq") == unmatched_terms(index, readings, nobody_hidden)
    assert ("zorblaxion",) == looked("zorblaxion", Filters(), floor=1).unmatched


@pytest.mark.parametrize(
    ("filters", "told"),
    [
        (EVERYBODY, ["'desk': x", "'vault': x", "y"]),
        (Filters(), ["'desk': x", "", "y"]),
        (Filters(servers=frozenset({"desk"})), ["'desk': x", "", "y"]),
        (Filters(servers=frozenset({"none"})), ["", "", "y"]),
    ],
)
def test_a_note_names_no_server_that_is_filtered_out(filters: Filters, told: list[str]) -> None:
    """That something is missing is told all the same."""
    notes = [
        Diagnostic(stage="catalog", code="source_load_failed", detail="'desk': x"),
        Diagnostic(stage="catalog", code="source_load_failed", detail="'vault': x"),
        Diagnostic(stage="embed", code="vectors_incomplete", detail="y"),
        Diagnostic(stage="catalog", code="name_qualified", detail="'vault' became"),
    ]
    found = looked("send a letter", filters, *notes)

    assert told == [note.detail for note in found.diagnostics[:3]]
    assert "name_qualified" not in codes(found)
