"""Texts of results that were told before."""

from __future__ import annotations

from dataclasses import replace

from gateway.discovery.written import Written
from gateway.types import Diagnostic, SearchResult
from tests.discovery.test_results import match

RESULT = SearchResult(mode="graph", matches=(match("a"),))


def test_a_remembered_result_is_written_once() -> None:
    """The first asker's text serves the second, whose result says that it was remembered."""
    written = Written[str]()

    before = written.get(RESULT)
    put = written.put(RESULT, "text")
    after = [written.get(RESULT), written.get(replace(RESULT, cached=True))]

    assert (None, "text", ["text", "text"]) == (before, put, after)


def test_another_result_is_written_anew() -> None:
    """Two results that found nothing are not one."""
    written = Written[str]()
    empty = SearchResult(mode="empty")
    noted = replace(empty, diagnostics=(Diagnostic(stage="catalog", code="no_match", detail="d"),))
    written.put(empty, "nothing")

    assert [None, None] == [written.get(noted), written.get(RESULT)]


def test_only_the_latest_are_kept() -> None:
    """A server runs for months."""
    written = Written[int](items=2)
    results = [replace(RESULT, matches=(match(name),)) for name in "abc"]
    written.put(results[0], 0)
    written.put(results[1], 1)
    written.get(results[0])
    written.put(results[2], 2)

    assert [0, None, 2] == [written.get(each) for each in results]
