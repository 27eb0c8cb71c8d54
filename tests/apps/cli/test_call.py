"""`gateway call` on real servers."""

from __future__ import annotations

import json

import pytest

from gateway.cli import NOTHING, OK, UNAVAILABLE, USAGE
from tests.apps.cli.running import EXCEL, REAL_TIME, Place

_TOKYO = '{"timezone": "Asia/Tokyo"}'


def test_call_prints_the_answer_of_the_tool(place: Place) -> None:
    config = place.config({"time": REAL_TIME})
    ran = place.run("call", "get_current_time", _TOKYO, "-c", config)
    whole = place.run("call", "time/get_current_time", "-", "-c", config, "--json", stdin=_TOKYO)

    assert (OK, "Starting servers and listing their tools: 1\n") == (ran.code, ran.err)
    assert json.loads(ran.out)["timezone"] == "Asia/Tokyo"
    assert ("time/get_current_time", False) == (whole.json["tool_id"], whole.json["is_error"])
    assert json.loads(whole.json["content"][0]["text"])["timezone"] == "Asia/Tokyo"


def test_call_fails_if_the_tool_reports_an_error(place: Place) -> None:
    config = place.config({"excel": EXCEL})
    missing = json.dumps({"path": str(place.folder / "missing.xlsx")})

    ran = place.run("call", "excel/describe_workbook", missing, "-c", config)

    assert ran.code == NOTHING
    assert ran.out.strip()


@pytest.mark.parametrize("arguments", ["{", "[]", "7"])
def test_call_refuses_arguments_that_are_not_an_object_without_starting_a_server(
    place: Place, arguments: str
) -> None:
    ran = place.run("call", "get_current_time", arguments, "-c", "nowhere.json")

    assert (USAGE, "") == (ran.code, ran.out)
    assert "the arguments" in ran.err


def test_call_shows_the_schema_for_invalid_arguments(place: Place) -> None:
    config = place.config()

    output = place.run("call", "get_current_time", "{}", "-c", config)
    data = place.run("call", "get_current_time", "{}", "-c", config, "--json")

    assert (USAGE, "") == (output.code, output.out)
    assert '"required"' in output.err
    assert data.json["error"]["schema"]["required"] == ["timezone"]


def test_call_of_a_tool_of_a_dead_server_names_the_server(place: Place) -> None:
    config = place.config({"gone": {"command": "no-such-program"}})

    ran = place.run("call", "gone/anything", "{}", "-c", config)

    assert ran.code == UNAVAILABLE
    assert "Correct the failing servers first" in ran.err
