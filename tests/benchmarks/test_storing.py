"""Stores after killed writers. The benchmark kills many more."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="it kills by SIGKILL")


def test_stores_of_killed_writers_are_readable_and_complete() -> None:
    """Two processes write into one store at a time. One folder contains older files."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.storing", "--kills", "8", "--json"],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    figures = json.loads(done.stdout)

    faults = (
        "ended_otherwise", "wrong_vectors", "torn_batches", "wrong_entries", "lost_writes",
        "calls_twice", "damaged_files", "set_aside",
    )  # fmt: skip
    assert dict.fromkeys(faults, 0) == {name: figures[name] for name in faults}
    assert (8, 1) == (figures["kills"], figures["from_older_files"])
    assert figures["acknowledged"] > 0
