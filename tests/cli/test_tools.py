"""`gateway tools`: ids, and what is stored of each server."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.cli.exit_codes import OK
from gateway.cli.session import show_progress
from gateway.cli.tables import age_text
from tests.cli.running import Place

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


def test_it_says_that_encoders_are_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """They are made once; a fresh machine would seem to hang."""
    monkeypatch.setenv("GATEWAY_ENCODER_DIR", str(tmp_path / "encoders"))
    with show_progress() as progress:
        progress("embeddings", 1, 3)
    (tmp_path / "encoders").mkdir()
    with show_progress() as progress:
        progress("embeddings", 1, 3)
        progress("embeddings", 3, 3)

    making = "Making the encoders for this machine, once, then embedding what is new: 2\n"
    assert f"{making}Embedding what is new: 2\n" == capsys.readouterr().err


def test_an_age_is_written_in_its_largest_unit() -> None:
    """What is not known is not shown."""
    ages = [age_text(seconds) for seconds in (None, 0.4, 61, 7300, 200_000)]

    assert ["", "0 s ago", "1 min ago", "2 h ago", "2 d ago"] == ages
