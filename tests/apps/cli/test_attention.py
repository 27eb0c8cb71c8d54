"""`gateway attention`."""

from __future__ import annotations

from gateway.cli import NEEDS_PERSON, OK
from tests.apps.cli.running import Place


def test_attention_lists_nothing_without_issues(place: Place) -> None:
    """A server whose tools were listed recently is started only with --live."""
    config = place.config({"srv": place.hostile()})
    first = place.run("attention", "-c", config, "--json")
    record = place.folder / "record"
    started = record.read_text()
    again = place.run("attention", "-c", config)
    stored = record.read_text()
    live = place.run("attention", "-c", config, "--live")

    assert (OK, {"issues": []}) == (first.code, first.json)
    assert (OK, "there are no issues\n", started) == (again.code, again.out, stored)
    assert (OK, True) == (live.code, len(started) < len(record.read_text()))


def test_attention_lists_issues_with_remedies_until_they_are_resolved(place: Place) -> None:
    down = {"url": "http://127.0.0.1:1/mcp"}
    guarded = {**down, "auth": {"type": "oauth"}}
    place.run("tools", "-c", place.config({"srv": place.hostile("plain")}))
    servers = {"srv": place.hostile("dressed_up"), "down": down, "guarded": guarded}
    config = place.config(servers)
    output = place.run("attention", "-c", config)
    result = place.run("attention", "-c", config, "--json")
    place.run("approve", "--all", "-c", config)
    later = place.run("attention", "-c", config, "--json")

    assert NEEDS_PERSON == output.code == result.code == later.code
    assert [
        ("changed", "srv", "gateway approve srv"),
        ("changed", "srv/good", "gateway approve srv/good"),
        ("signed_out", "guarded", "gateway login guarded"),
        ("failing", "down", "gateway servers test down"),
    ] == [(issue["kind"], issue["id"], issue["command"]) for issue in result.json["issues"]]
    assert '-   "description": "Works."\n+   "description": "Works better."\n' in output.out
    assert "gateway login guarded" in output.out
    assert ["signed_out", "failing"] == [issue["kind"] for issue in later.json["issues"]]


def test_attention_reads_the_newest_evaluation_report_of_the_console(place: Place) -> None:
    config = place.config({"srv": place.hostile()})
    place.put("cache/reports/2026-01-01.json", "{}")
    result = place.run("attention", "-c", config, "--json")
    other = place.run("attention", "-c", config, "--reports", str(place.folder / "none"), "--json")

    assert ["2026-01-01.json"] == [issue["id"] for issue in result.json["issues"]]
    assert (OK, []) == (other.code, other.json["issues"])
