"""Runs that are measured once."""

from __future__ import annotations

from pathlib import Path

from benchmarks.run_cache import Lines, cached_runs, data_hash, files_hash


class Measuring:
    """Counts how often somebody measures."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self) -> dict[str, Lines]:
        self.times += 1
        return {"clean": [{"id": "q", "ranked": ["ü"]}]}


def test_a_run_is_measured_once(tmp_path: Path) -> None:
    """Another key, or the wish for fresh ones, measures again."""
    measuring = Measuring()

    first = cached_runs(tmp_path / "new", {"a": 1}, measuring)
    again = cached_runs(tmp_path / "new", {"a": 1}, measuring)

    assert (first, 1) == (again, measuring.times)
    assert cached_runs(tmp_path / "new", {"a": 2}, measuring)
    assert cached_runs(tmp_path / "new", {"a": 1}, measuring, fresh=True)
    assert 3 == measuring.times
    assert 2 == len(list((tmp_path / "new").iterdir()))


def test_data_is_known_by_what_a_run_reads_of_it(tmp_path: Path) -> None:
    """A licence beside it changes nothing."""
    (tmp_path / "catalog.jsonl").write_text("{}", encoding="utf-8")
    before = data_hash(tmp_path)
    (tmp_path / "LICENSE.txt").write_text("free", encoding="utf-8")

    assert before == data_hash(tmp_path)
    (tmp_path / "edges.jsonl").write_text("{}", encoding="utf-8")
    assert before != data_hash(tmp_path)


def test_code_is_known_by_its_files_and_their_names(tmp_path: Path) -> None:
    """Compiled files come and go."""
    folder = tmp_path / "package"
    (folder / "__pycache__").mkdir(parents=True)
    (folder / "one.py").write_text("1", encoding="utf-8")
    before = files_hash([folder])
    (folder / "__pycache__" / "one.pyc").write_text("x", encoding="utf-8")

    assert before == files_hash([folder])
    (folder / "one.py").rename(folder / "two.py")
    assert before != files_hash([folder])
