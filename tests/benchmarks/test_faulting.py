"""Hostile and dying servers, a little of each: the long run is the benchmark's."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it reads /proc")


def test_nothing_fails_hangs_grows_or_stays() -> None:
    """In a process of its own: memory and children are counted."""
    few = ("--seconds", "3", "--cancellations", "60", "--patience", "2", "--json")
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.faulting", *few],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    figures = json.loads(done.stdout)

    assert 1.0 == figures["good_server_answered"]
    assert figures["peak_memory_growth_mb"] < 50
    assert 0 == figures["searches_failed"]
    assert 0 == figures["calls_twice"]
    assert figures["reconnected"]
    assert figures["answers_after"]
    assert (0, 0, 0) == tuple(
        figures[name] for name in ("pending_after", "tasks_left", "children_left")
    )
    assert min(figures[name] for name in ("kills", "searches", "calls", "cancellations")) > 0
