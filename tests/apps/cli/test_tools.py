"""`gateway tools`: ids, and what is stored of each server."""

from __future__ import annotations

import pytest

from gateway.cli import OK
from gateway.cli.session import show_progress
from gateway.cli.tables import age_text
from tests.apps.cli.running import Place

_COUNTED = """
import runpy, sys
with open(sys.argv.pop(1), "a") as file:
    file.write("start ")
sys.argv.pop(0)
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def _starts(place: Place) -> int:
    return (place.folder / "starts").read_text().count("start")


def _counted(place: Place) -> str:
    """A configuration with a server that notes each of its starts."""
    server = place.hostile()
    args = [str(place.put("counted.py", _COUNTED)), str(place.folder / "starts"), *server["args"]]  # type: ignore[misc]  # a list
    return place.config({"srv": {**server, "args": args}})


def test_a_stored_list_serves_until_it_is_asked_for_anew(place: Place) -> None:
    """No server is started for what is known; how old that is stands beside it."""
    config = _counted(place)
    first = place.run("tools", "-c", config)
    once = _starts(place)
    second = place.run("tools", "-c", config)
    data = place.run("tools", "-c", config, "--json")
    still = _starts(place)
    place.run("tools", "-c", config, "--refresh")

    assert (OK, OK) == (first.code, second.code)
    assert "srv/good" in second.out
    assert "s ago" in second.out
    assert 0 <= data.json["ages_s"]["srv"] < 60
    assert (1, 1, 2) == (once, still, _starts(place))


def test_one_line_a_step_says_what_a_command_does(place: Place) -> None:
    """Where nobody sees a bar; what is stored needs no step."""
    config = place.config({"srv": place.hostile()})
    first = place.run("tools", "-c", config)
    second = place.run("tools", "-c", config)

    assert "Starting servers and listing their tools: 1\n" == first.err
    assert "" == second.err


def test_each_step_is_said_once_with_what_is_left_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    """Also that the model is made ready: a fresh machine would seem to hang. What is done is no
    step.
    """
    with show_progress() as progress:
        steps = ("servers", 3), ("model", 0), ("model", 1), ("embeddings", 1), ("embeddings", 3)
        for stage, done in steps:
            progress(stage, done, 1 if stage == "model" else 3)

    lines = ["Preparing the embedded model: 1", "Embedding what is new: 2"]
    assert lines == capsys.readouterr().err.splitlines()


def test_a_long_step_says_now_and_then_what_is_left(capsys: pytest.CaptureFixture[str]) -> None:
    """By the time that the texts so far took, every ten seconds."""
    now = [0.0]
    with show_progress(clock=lambda: now[0]) as progress:
        for done in range(0, 641, 32):
            progress("embeddings", done, 640)
            now[0] += 2

    lines = ["640", "160 of 640, about 0:00:30 left", "320 of 640, about 0:00:20 left"]
    lines.append("480 of 640, about 0:00:10 left")
    assert [
        f"Embedding what is new: {line}" for line in lines
    ] == capsys.readouterr().err.splitlines()


def test_an_age_is_written_in_its_largest_unit() -> None:
    """What is not known is not shown."""
    ages = [age_text(seconds) for seconds in (None, 0.4, 61, 7300, 200_000)]

    assert ["", "0 s ago", "1 min ago", "2 h ago", "2 d ago"] == ages
