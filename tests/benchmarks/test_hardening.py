"""Figures of the hardening benchmark, over one threat and one short flood of requests."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from benchmarks.hardening import app, losing, run_tests
from tests.threats import Threat

TESTS = """
import pytest

@pytest.mark.parametrize("number", [1, 2])
def test_good(number): pass

@pytest.mark.parametrize("number", [1, 2])
def test_bad(number): assert number == 1

@pytest.mark.skip
def test_left_out(): pass
"""


def threat(*functions: str) -> Threat:
    ids = tuple(f"room/test_small.py::{name}" for name in functions)
    return Threat(event="", promise="", held="", tests=ids)


def test_threat_passes_if_all_its_tests_passed(tmp_path: Path) -> None:
    """Failed, skipped and missing tests fail it."""
    room = tmp_path / "tests" / "room"
    room.mkdir(parents=True)
    (room / "test_small.py").write_text(TESTS, encoding="utf-8")
    threats = {"1": threat("test_good"), "2": threat("test_good", "test_bad", "test_left_out")}

    outcomes = run_tests(threats, tmp_path)
    lost = losing({**threats, "3": threat("test_gone")}, outcomes)

    assert [
        ("2", "room/test_small.py::test_bad", "failed"),
        ("2", "room/test_small.py::test_left_out", "skipped"),
        ("3", "room/test_small.py::test_gone", "did not run"),
    ] == [tuple(row.values()) for row in lost]
    with pytest.raises(RuntimeError, match="pytest ended with 4"):
        run_tests({"3": threat("test_gone")}, tmp_path)


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read as Linux shows it")
def test_every_figure_of_hardening_is_reported() -> None:
    """Unknown threats are refused."""
    words = ["--threat", "05-stuffed-ranking", "--flood", "ping", "--seconds", "0.1"]
    result = CliRunner().invoke(app, [*words, "--rounds", "1", "--json"])
    unknown = CliRunner().invoke(app, ["--threat", "nothing"])

    found = json.loads(result.stdout)
    assert (1, 1, 1) == (found["threats"], found["passing"], found["floods"])
    assert {"poison_flagged", "honest_flagged", "worst_neighbour_ratio", "rss_growth_mb"} < set(
        found
    )
    assert 2 == unknown.exit_code
