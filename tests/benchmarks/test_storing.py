"""Writers that are killed, a few of them: the long run is the benchmark's."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="it kills by SIGKILL")


def test_what_killed_writers_leave_is_readable_whole_and_right() -> None:
    """In processes of their own, two on one store at a time; one folder holds older files."""
    few = ("--kills", "8", "--seconds", "0.1", "--readers", "2", "--json")
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.storing", *few],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    figures = json.loads(done.stdout)

    faults = (
        "ended_otherwise", "wrong_vectors", "torn_batches", "wrong_listings", "wrong_entries",
        "lost_writes", "calls_twice", "damaged_files", "set_aside",
    )  # fmt: skip
    assert dict.fromkeys(faults, 0) == {name: figures[name] for name in faults}
    assert (8, 1) == (figures["kills"], figures["from_older_files"])
    assert figures["acknowledged"] > 0
    assert figures["reads_beside_per_s"] > 0
