"""Texts of results that were told before."""

from __future__ import annotations

from dataclasses import replace

from gateway.discovery.written import Written
from gateway.types import Diagnostic, SearchResult
from tests.discovery.test_results import match

RESULT = SearchResult(mode="graph", matches=(match("a"),))


class Pen:
    """Writes a number, one higher each time."""

    def __init__(self) -> None:
        self.wrote = 0

    def __call__(self) -> str:
        self.wrote += 1
        return str(self.wrote)


def test_a_remembered_result_is_written_once() -> None:
    """The first asker's text serves the second, whose result says that it was remembered."""
    written, pen = Written(), Pen()

    texts = [
        written.text(RESULT, 1, pen),
        written.text(replace(RESULT, cached=True), 1, pen),
        written.text(RESULT, 1, pen),
    ]

    assert (["1", "1", "1"], 1) == (texts, pen.wrote)


def test_another_index_or_another_result_is_written_anew() -> None:
    """Two results that found nothing are not one."""
    written, pen = Written(), Pen()
    empty = SearchResult(mode="empty")
    noted = replace(empty, diagnostics=(Diagnostic(stage="catalog", code="c", detail="d"),))

    texts = [
        written.text(RESULT, 1, pen),
        written.text(RESULT, 2, pen),
        written.text(empty, 1, pen),
        written.text(noted, 1, pen),
        written.text(empty, 1, pen),
    ]

    assert ["1", "2", "3", "4", "5"] == texts


def test_only_the_latest_are_kept() -> None:
    """A server runs for months."""
    written, pen = Written(items=1), Pen()
    other = replace(RESULT, matches=(match("b"),))

    texts = [written.text(each, 1, pen) for each in (RESULT, other, other, RESULT)]

    assert ["1", "2", "2", "3"] == texts
