"""The usage benchmark: one half of the tasks is replayed, the other half judged."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.usage import measure
from gateway.testing import HashingEmbedder
from tests.benchmarks.written import write_set

LETTERS = "abcdefghij"


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sixty tasks of ten kinds, whose next tool cannot be guessed from text or name."""
    folder = tmp_path_factory.mktemp("sequences")
    names = [f"{letter}{number}" for letter in LETTERS for number in range(3)]
    tools = [{"id": name, "name": name, "server": name, "description": "Work."} for name in names]
    queries = [
        {
            "id": f"q{number}",
            "query": "do it",
            "relevant": [],
            "sequence": [f"{LETTERS[(number + 3 * step) % 10]}{step}" for step in range(3)],
        }
        for number in range(60)
    ]
    return write_set(folder, catalog=tools, queries=queries)


@pytest.mark.parametrize("learn", ["on", "auto"])
def test_learning_from_half_of_the_tasks_predicts_the_other_half(folder: Path, learn: str) -> None:
    """Nearly all misses of the next tool disappear. The same calls in random order change
    nothing.
    """
    result = measure([folder], learn=learn, embedder=HashingEmbedder())  # type: ignore[arg-type]

    assert result["misses_fall"] > 0.8
    assert result["misses_fall_all"] > 0.8
    assert 0.0 == result["shuffled_loses"]
    assert ["odd", "even"] == [half["judged"] for half in result["halves"]]
    assert 120 == sum(half["all"]["steps"] for half in result["halves"])
    assert 60 == sum(half["first"]["steps"] for half in result["halves"])
