from __future__ import annotations

from pathlib import Path

import pytest

from gateway.errors import ConfigError, InvalidRequestError
from gateway.gateway import Gateway
from gateway.options import Options, SearchOptions
from gateway.plugins.quality import (
    EvalReport,
    EvalRequest,
    compare,
    newest_report,
    read_report,
    report_files,
    write_report,
)
from gateway.types import Hints, ToolDefinition
from tests.conftest import OpenGateway
from tests.fakes import tool
from tests.plugins.quality.conftest import Evaluate

ASKED = {"what do I owe": "list_invoices", "a song": "play_music", "the forecast": "get_weather"}


@pytest.fixture
def before(run: Evaluate) -> EvalReport:
    return run(ASKED)


@pytest.fixture
def changed_gateway(open_gateway: OpenGateway, catalog: tuple[ToolDefinition, ...]) -> Gateway:
    """A gateway with the same tools, of which one is found by another word, and one is no longer
    found.
    """
    changed = {
        "list_invoices": tool(
            "list_invoices",
            "List the open invoices of a customer.",
            hints=Hints(keywords=("what do I owe",)),
        ),
        "play_music": tool("play_music", "Noise."),
    }
    return open_gateway([changed.get(original.name, original) for original in catalog])


def test_compare_reports_no_changes_for_equal_reports(before: EvalReport) -> None:
    comparison = compare(before, before)

    assert ((), (), (), ()) == (
        comparison.worse,
        comparison.wins,
        comparison.losses,
        comparison.lost_tools,
    )
    assert (3, 0, 0.0) == (
        comparison.requests,
        comparison.left_out,
        comparison.changes["recall@5"].difference,
    )


def test_compare_refuses_different_catalogs_by_default(
    before: EvalReport, run: Evaluate, changed_gateway: Gateway
) -> None:
    """With `other_catalog`, reports before and after an improved description can be compared."""
    after = run(ASKED, on=changed_gateway)

    with pytest.raises(InvalidRequestError, match="different catalogs: 2 tools changed"):
        compare(before, after)
    comparison = compare(before, after, other_catalog=True)

    assert ["what do I owe"] == [change.request for change in comparison.wins]
    assert ["a song"] == [change.request for change in comparison.losses]
    assert (("shelf/play_music",), ("shelf/list_invoices",)) == (
        comparison.lost_tools,
        comparison.gained_tools,
    )


def test_compare_names_figures_worse_than_the_tolerance(
    before: EvalReport, run: Evaluate, open_gateway: OpenGateway
) -> None:
    after = run(
        ASKED,
        on=open_gateway([tool(name) for name in ("list_invoices", "play_music", "get_weather")]),
    )
    turned = compare(after, before, other_catalog=True)
    comparison = compare(before, after, other_catalog=True)
    patient = compare(before, after, tolerance=1, other_catalog=True)

    assert ("recall@5", "complete@10") == comparison.worse
    assert ((), ()) == (turned.worse, patient.worse)
    change = comparison.changes["recall@5"]
    assert change.low <= change.difference <= change.high < 1
    assert not comparison.changes["mrr"].worse


def test_compare_counts_more_false_accepts_as_worse(
    run: Evaluate, open_gateway: OpenGateway, catalog: tuple[ToolDefinition, ...]
) -> None:
    """A gateway that trusts every answer accepts requests that no tool serves."""
    trusting = Options(search=SearchOptions(min_confidence=0))
    request = EvalRequest(text="mend my bicycle")
    careful, careless = (
        run(ASKED, request),
        run(ASKED, request, on=open_gateway(catalog, options=trusting)),
    )

    change = compare(careful, careless).changes["false_accepts"]
    assert (0.0, 1.0, True) == (change.before, change.after, change.worse)
    assert not compare(careless, careful).worse


def test_compare_leaves_out_requests_of_only_one_report(run: Evaluate, before: EvalReport) -> None:
    more = run({**ASKED, "a flight": "book_flight"})
    other = run({"a flight": "book_flight"})

    assert (3, 1) == ((comparison := compare(before, more)).requests, comparison.left_out)
    with pytest.raises(InvalidRequestError, match="no request is in both"):
        compare(before, other)


def test_written_report_is_read_back_unchanged(before: EvalReport) -> None:
    assert before == read_report(write_report(before), where="x")
    for text in ("no JSON", "{}"):
        with pytest.raises(ConfigError, match=r"^old\.json"):
            read_report(text, where="old.json")


def test_newest_report_is_the_last_by_name(before: EvalReport, tmp_path: Path) -> None:
    none = newest_report(tmp_path / "missing")
    (tmp_path / "2026-01-02.json").write_text(write_report(before), "utf-8")
    (tmp_path / "2026-01-01.json").write_text("{}", "utf-8")
    newest = newest_report(tmp_path)
    (tmp_path / "2026-01-03.json").write_bytes(b"\xff")

    assert None is none
    assert before == newest
    assert ["2026-01-01.json", "2026-01-02.json", "2026-01-03.json"] == [
        path.name for path in report_files(tmp_path)
    ]
    with pytest.raises(ConfigError, match=r"2026-01-03\.json.* cannot be read"):
        newest_report(tmp_path)
