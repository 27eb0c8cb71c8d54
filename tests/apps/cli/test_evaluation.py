"""`gateway eval`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gateway.cli import OK, USAGE
from gateway.plugins.usage import USAGE as LEDGER
from gateway.plugins.usage import CallNote, SearchNote, SqlCallLog
from gateway.storage import SqliteDatabase
from gateway.testing import ScriptedModel, Turn
from tests.apps.cli.running import Place

ASKED = """
| request | tool |
| --- | --- |
| what o'clock is it | get_current_time |
| what is nine in Kyiv for somebody in Tokyo | time/convert_time |
| tell the time, and convert it | get_current_time -> convert_time |
| mend my bicycle | none |
"""


@pytest.fixture
def files(place: Place) -> Place:
    """Folder with the time server and a file of test requests."""
    place.config()
    place.put("asked.md", ASKED)
    return place


def config(place: Place) -> tuple[str, str]:
    return "-c", str(place.folder / "servers.json")


def asked(place: Place) -> tuple[str, ...]:
    return ("eval", "run", str(place.folder / "asked.md"), "--strategy", "graph", *config(place))


def run(place: Place, name: str, *more: str) -> str:
    out = str(place.folder / name)

    assert 0 == place.run(*asked(place), "--out", out, *more).code
    return out


def test_eval_requests_makes_requests_and_freezes_them(files: Place) -> None:
    """Requests of the user come first, and existing files are not overwritten."""
    out = files.folder / "requests.jsonl"
    words = ("eval", "requests", str(files.folder / "asked.md"), "--language", "de", *config(files))
    created = files.run(*words, "--unanswerable", "2", "--json").json
    first = files.run(*words, "--out", str(out))
    again = files.run(*words, "--out", str(out))
    stored = files.run("eval", "requests", str(out), "--no-rules", *config(files), "--json").json

    assert (0, 2) == (first.code, again.code)
    assert "--force" in again.err
    assert ["what o'clock is it", "user"] == [
        created["requests"][0]["request"],
        created["requests"][3].get("source", "user"),
    ]
    assert {"user", "rules", "held_out"} == {
        request.get("source", "user") for request in created["requests"]
    }
    assert [["time/get_current_time"]] == created["requests"][0]["tools"]
    assert 2 == sum(request.get("source") == "held_out" for request in created["requests"])
    assert len(stored["requests"]) == len(out.read_text("utf-8").splitlines()) - 1


def test_eval_run_reports_the_tools_that_are_found(files: Place) -> None:
    page = files.folder / "report.html"
    out = run(files, "a.json", "--page", str(page))
    output = files.run(*asked(files))
    data = files.run(*asked(files), "--json").json

    assert "recall@5" in output.out
    assert (4, 1) == (data["summary"]["requests"], data["summary"]["unanswerable"])
    assert {"time/convert_time", "time/get_current_time"} == {*data["catalog"]}
    assert data["cost"]["catalog"] > 0
    assert "<!doctype html>" in page.read_text("utf-8")
    assert 0 == files.run("eval", "compare", out, out).code


def test_eval_run_stores_reports_under_their_time(files: Place) -> None:
    reports = files.folder / "reports"
    first, second = (files.run(*asked(files), "--reports", str(reports)) for _ in range(2))
    (older, newer) = sorted(reports.iterdir())

    assert [f"stored as {item}" in ran.err for item, ran in ((older, first), (newer, second))] == [
        True,
        True,
    ]
    assert 0 == files.run("eval", "compare", str(older), str(newer), "--strict").code


def test_eval_run_warns_if_the_catalog_changed_since_the_requests_were_frozen(files: Place) -> None:
    frozen = files.put("old.jsonl", '{"catalog": "other"}\n{"request": "time", "tools": []}\n')
    ran = files.run("eval", "run", str(frozen), "--strategy", "graph", *config(files))

    assert "the catalog changed since the requests were frozen" in ran.err


def test_eval_compare_fails_for_a_worse_report_only_with_strict(files: Place) -> None:
    good = run(files, "good.json")
    nothing = ("--set", "search.limit=1", "--set", "search.max_limit=1")
    bad = run(files, "bad.json", *nothing)
    poor = files.put("poor.json", "{}")

    warned = files.run("eval", "compare", bad, "--baseline", good)
    failed = files.run("eval", "compare", good, bad, "--strict", "--json")
    fine = files.run("eval", "compare", bad, good, "--strict")
    patient = files.run("eval", "compare", good, bad, "--strict", "--tolerance", "1")

    assert [0, 1, 0, 0] == [item.code for item in (warned, failed, fine, patient)]
    assert "worse by more than 0.02: recall@5" in warned.err
    assert ["recall@5", "complete@10"] == failed.json["worse"]
    assert 2 == files.run("eval", "compare", good).code
    assert 2 == files.run("eval", "compare", good, str(poor)).code
    assert 2 == files.run("eval", "compare", good, "missing.json").code


def test_eval_run_with_curve_repeats_the_run_with_more_tools(files: Place) -> None:
    """The added tools do not stay in the user's catalog."""
    data = files.run(*asked(files), "--curve", "--json").json
    tools = files.run("tools", *config(files), "--json").json["tools"]

    assert [2, 6, 20] == [point["tools"] for point in data["curve"]]
    assert data["summary"]["figures"] == data["curve"][0]["figures"]
    assert {*data["curve"][0]["figures"]} == {*data["curve"][2]["figures"]}
    assert 2 == len(tools)
    assert "of 20 tools" in files.run(*asked(files), "--curve").out


def test_eval_requests_with_a_model_uses_the_key_of_the_normalizer(files: Place) -> None:
    """Requests that the model only copied from a tool are rejected with a note."""
    words = ("eval", "requests", "--no-rules", "--model", "m", *config(files))
    answer = "how late is it in Kyiv\nconvert time for me"
    with ScriptedModel(lambda _: Turn(answer)) as model:
        env = {"GATEWAY_NORMALIZE_BASE_URL": model.base_url, "GATEWAY_NORMALIZE_API_KEY": "k"}
        created = files.run(*words, "--unanswerable", "0", "--json", env=env)
        output = files.run(*words, env=env)
    keyless = files.run(*words)

    assert (0, 2) == (created.code, keyless.code)
    assert {"model"} == {request["source"] for request in created.json["requests"]}
    assert ["time/convert_time: convert time for me"] == created.json["rejected"]
    assert "rejected: time/convert_time" in output.err


def test_eval_requests_with_usage_adds_recorded_searches(place: Place) -> None:
    """Only searches are added that led to a call of a tool that still exists."""
    config, env = place.config(), {"GATEWAY_USAGE_RECORD_QUERIES": "on", "GATEWAY_USAGE": "on"}
    ledger = SqlCallLog(SqliteDatabase(place.cache / "usage.sqlite3", LEDGER))
    for task, tool in (("1", "time/convert_time"), ("2", "time/gone")):
        ledger.note_searches([SearchNote(query=f"query {task}", found=(tool,), task=task)])
        ledger.note(CallNote(tool=tool, outcome="ok", task=task))
    ledger.close()
    words = ("eval", "requests", "--no-rules", "-c", config, "--json")
    created = place.run(*words, "--usage", "--unanswerable", "0", env=env).json["requests"]
    place.put("made.jsonl", "\n".join(map(json.dumps, created)))
    place.run("eval", "run", str(place.folder / "made.jsonl"), "-c", config, env=env)
    ledger = SqlCallLog(SqliteDatabase(place.cache / "usage.sqlite3", LEDGER))
    searches = sum(search.searches for search in ledger.searches())
    ledger.close()

    expected = {"request": "query 1", "tools": [["time/convert_time"]], "source": "usage"}
    assert [expected] == created
    assert 2 == searches, "an evaluation is no use"


def test_eval_add_writes_a_request_once_without_starting_a_server(place: Place) -> None:
    file = str(place.folder / "asked.md")
    command = ("eval", "add", file, "tell the time, then convert it")

    first = place.run(*command, "get_current_time -> convert_time")
    again = place.run(*command, "get_current_time -> convert_time", "--json")
    none = place.run("eval", "add", file, "feed the cat", "none", "--json")
    blank = place.run("eval", "add", file, " ", "none")

    assert (OK, OK, OK, USAGE) == (first.code, again.code, none.code, blank.code)
    assert (False, True) == (again.json["added"], none.json["added"])
    assert f"added to {file}" == first.out.strip()
    rows = "| tell the time, then convert it | get_current_time -> convert_time |\n| feed the cat"
    assert rows in Path(file).read_text()
