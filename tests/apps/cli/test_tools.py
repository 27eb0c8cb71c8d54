"""`gateway tools`, and the progress that commands print."""

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
    """Return the path of a configuration with a server that records each of its starts."""
    server = place.hostile()
    args = [str(place.put("counted.py", _COUNTED)), str(place.folder / "starts"), *server["args"]]  # type: ignore[misc]  # a list
    return place.config({"srv": {**server, "args": args}})


def test_tools_command_uses_a_stored_listing_until_refresh(place: Place) -> None:
    """The output shows the age of the stored listing."""
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


def test_progress_prints_one_line_per_stage(place: Place) -> None:
    """Without a terminal, lines are printed, not bars. A stage without work is not printed."""
    config = place.config({"srv": place.hostile()})
    first = place.run("tools", "-c", config)
    second = place.run("tools", "-c", config)

    assert "Starting servers and listing their tools: 1\n" == first.err
    assert "" == second.err


def test_progress_shows_the_remaining_work_of_each_stage_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Preparing the model is a stage, because a new machine would seem to hang.

    Finished work is not shown.
    """
    with show_progress() as progress:
        steps = ("servers", 3), ("model", 0), ("model", 1), ("embeddings", 1), ("embeddings", 3)
        for stage, done in steps:
            progress(stage, done, 1 if stage == "model" else 3)

    lines = ["Preparing the embedding model: 1", "Embedding new texts: 2"]
    assert lines == capsys.readouterr().err.splitlines()


def test_progress_of_a_long_stage_shows_the_remaining_time(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A line is printed every ten seconds."""
    now = [0.0]
    with show_progress(clock=lambda: now[0]) as progress:
        for done in range(0, 641, 32):
            progress("embeddings", done, 640)
            now[0] += 2

    lines = ["640", "160 of 640, about 0:00:30 left", "320 of 640, about 0:00:20 left"]
    lines.append("480 of 640, about 0:00:10 left")
    assert [
        f"Embedding new texts: {line}" for line in lines
    ] == capsys.readouterr().err.splitlines()


def test_age_text_uses_the_largest_unit_of_a_duration() -> None:
    ages = [age_text(seconds) for seconds in (None, 0.4, 61, 7300, 200_000)]

    assert ["", "0 s ago", "1 min ago", "2 h ago", "2 d ago"] == ages
