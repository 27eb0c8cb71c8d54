"""Two evaluations of the same requests."""

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
def hinted(open_gateway: OpenGateway, catalog: tuple[ToolDefinition, ...]) -> Gateway:
    """The same tools; one is found by another word, and another is found no more."""
    changed = {
        "list_invoices": tool(
            "list_invoices",
            "List the open invoices of a customer.",
            hints=Hints(keywords=("what do I owe",)),
        ),
        "play_music": tool("play_music", "Noise."),
    }
    return open_gateway([changed.get(each.name, each) for each in catalog])


def test_a_run_does_not_differ_from_itself(before: EvalReport) -> None:
    found = compare(before, before)

    assert ((), (), (), ()) == (found.worse, found.wins, found.losses, found.lost_tools)
    assert (3, 0, 0.0) == (found.requests, found.left_out, found.changes["recall@5"].difference)


def test_another_catalog_is_refused_unless_it_is_wanted(
    before: EvalReport, run: Evaluate, hinted: Gateway
) -> None:
    """Descriptions may have been mended."""
    after = run(ASKED, on=hinted)

    with pytest.raises(InvalidRequestError, match="different catalogs: 2 tools changed"):
        compare(before, after)
    found = compare(before, after, other_catalog=True)

    assert ["what do I owe"] == [each.request for each in found.wins]
    assert ["a song"] == [each.request for each in found.losses]
    assert (("shelf/play_music",), ("shelf/list_invoices",)) == (
        found.lost_tools,
        found.gained_tools,
    )


def test_what_got_worse_by_more_than_is_tolerated_is_named(
    before: EvalReport, run: Evaluate, open_gateway: OpenGateway
) -> None:
    """Recall fell by a third or by nothing; a figure that is not judged never counts."""
    after = run(
        ASKED,
        on=open_gateway([tool(name) for name in ("list_invoices", "play_music", "get_weather")]),
    )
    turned = compare(after, before, other_catalog=True)
    found = compare(before, after, other_catalog=True)
    patient = compare(before, after, tolerance=1, other_catalog=True)

    assert ("recall@5", "complete@10") == found.worse
    assert ((), ()) == (turned.worse, patient.worse)
    change = found.changes["recall@5"]
    assert change.low <= change.difference <= change.high < 1
    assert not found.changes["mrr"].worse


def test_false_accepts_may_not_rise(
    run: Evaluate, open_gateway: OpenGateway, catalog: tuple[ToolDefinition, ...]
) -> None:
    """A host that trusts every answer accepts what nothing serves."""
    trusting = Options(search=SearchOptions(min_confidence=0))
    asked = EvalRequest(text="mend my bicycle")
    careful, careless = (
        run(ASKED, asked),
        run(ASKED, asked, on=open_gateway(catalog, options=trusting)),
    )

    change = compare(careful, careless).changes["false_accepts"]
    assert (0.0, 1.0, True) == (change.before, change.after, change.worse)
    assert not compare(careless, careful).worse


def test_requests_of_one_run_alone_are_left_out(run: Evaluate, before: EvalReport) -> None:
    more = run({**ASKED, "a flight": "book_flight"})
    other = run({"a flight": "book_flight"})

    assert (3, 1) == ((found := compare(before, more)).requests, found.left_out)
    with pytest.raises(InvalidRequestError, match="no request is in both"):
        compare(before, other)


def test_a_report_is_read_as_it_was_written(before: EvalReport) -> None:
    """What is none is refused by its name."""
    assert before == read_report(write_report(before), where="x")
    for text in ("no JSON", "{}"):
        with pytest.raises(ConfigError, match=r"^old\.json"):
            read_report(text, where="old.json")


def test_the_newest_report_of_a_folder_has_the_last_name(
    before: EvalReport, tmp_path: Path
) -> None:
    """A folder that is not there has none; what is no report is named."""
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
