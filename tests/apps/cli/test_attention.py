"""`gateway attention`."""

from __future__ import annotations

from gateway.cli import NEEDS_PERSON, OK
from tests.apps.cli.running import Place


def test_what_is_well_is_quiet(place: Place) -> None:
    """A server with a recent tool list is not started again, but for --live."""
    config = place.config({"srv": place.hostile()})
    first = place.run("attention", "-c", config, "--json")
    record = place.folder / "record"
    started = record.read_text()
    again = place.run("attention", "-c", config)
    kept = record.read_text()
    live = place.run("attention", "-c", config, "--live")

    assert (OK, {"issues": []}) == (first.code, first.json)
    assert (OK, "nothing wants attention\n", started) == (again.code, again.out, kept)
    assert (OK, True) == (live.code, len(started) < len(record.read_text()))


def test_what_wants_attention_comes_with_what_to_do(place: Place) -> None:
    """Most urgent first, as a table and as JSON, until a person has done it."""
    down = {"url": "http://127.0.0.1:1/mcp"}
    guarded = {**down, "auth": {"type": "oauth"}}
    place.run("tools", "-c", place.config({"srv": place.hostile("plain")}))
    servers = {"srv": place.hostile("dressed_up"), "down": down, "guarded": guarded}
    config = place.config(servers)
    shown = place.run("attention", "-c", config)
    found = place.run("attention", "-c", config, "--json")
    place.run("approve", "--all", "-c", config)
    later = place.run("attention", "-c", config, "--json")

    assert NEEDS_PERSON == shown.code == found.code == later.code
    assert [
        ("changed", "srv", "gateway approve srv"),
        ("changed", "srv/good", "gateway approve srv/good"),
        ("signed_out", "guarded", "gateway login guarded"),
        ("failing", "down", "gateway servers test down"),
    ] == [(issue["kind"], issue["id"], issue["command"]) for issue in found.json["issues"]]
    assert '-   "description": "Works."\n+   "description": "Works better."\n' in shown.out
    assert "gateway login guarded" in shown.out
    assert ["signed_out", "failing"] == [issue["kind"] for issue in later.json["issues"]]


def test_the_newest_report_of_the_console_is_read_too(place: Place) -> None:
    """Unless another folder is named."""
    config = place.config({"srv": place.hostile()})
    place.put("cache/reports/2026-01-01.json", "{}")
    found = place.run("attention", "-c", config, "--json")
    other = place.run("attention", "-c", config, "--reports", str(place.folder / "none"), "--json")

    assert ["2026-01-01.json"] == [issue["id"] for issue in found.json["issues"]]
    assert (OK, []) == (other.code, other.json["issues"])
