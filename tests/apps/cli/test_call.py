"""`gateway call` on real servers."""

from __future__ import annotations

import json

import pytest

from gateway.cli import NOTHING, OK, UNAVAILABLE, USAGE
from tests.apps.cli.running import EXCEL, REAL_TIME, Place

_TOKYO = '{"timezone": "Asia/Tokyo"}'


def test_a_tool_answers_on_standard_output(place: Place) -> None:
    config = place.config({"time": REAL_TIME})
    ran = place.run("call", "get_current_time", _TOKYO, "-c", config)
    whole = place.run("call", "time/get_current_time", "-", "-c", config, "--json", stdin=_TOKYO)

    assert (OK, "Starting servers and listing their tools: 1\n") == (ran.code, ran.err)
    assert json.loads(ran.out)["timezone"] == "Asia/Tokyo"
    assert ("time/get_current_time", False) == (whole.json["tool_id"], whole.json["is_error"])
    assert json.loads(whole.json["content"][0]["text"])["timezone"] == "Asia/Tokyo"


def test_what_the_tool_calls_a_failure_is_one(place: Place) -> None:
    config = place.config({"excel": EXCEL})
    missing = json.dumps({"path": str(place.folder / "missing.xlsx")})

    ran = place.run("call", "excel/describe_workbook", missing, "-c", config)

    assert ran.code == NOTHING
    assert ran.out.strip()


@pytest.mark.parametrize("arguments", ["{", "[]", "7"])
def test_arguments_that_are_no_object_are_refused_before_anything_starts(
    place: Place, arguments: str
) -> None:
    ran = place.run("call", "get_current_time", arguments, "-c", "nowhere.json")

    assert (USAGE, "") == (ran.code, ran.out)
    assert "the arguments" in ran.err


def test_arguments_that_do_not_fit_show_the_schema(place: Place) -> None:
    config = place.config()

    shown = place.run("call", "get_current_time", "{}", "-c", config)
    data = place.run("call", "get_current_time", "{}", "-c", config, "--json")

    assert (USAGE, "") == (shown.code, shown.out)
    assert '"required"' in shown.err
    assert data.json["error"]["schema"]["required"] == ["timezone"]


def test_a_tool_of_a_dead_server_is_unavailable_and_not_unknown(place: Place) -> None:
    config = place.config({"gone": {"command": "no-such-program"}})

    ran = place.run("call", "gone/anything", "{}", "-c", config)

    assert ran.code == UNAVAILABLE
    assert "Mend the servers first" in ran.err
