"""Folders that are made once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gateway.plugins.local import cached_conversion


class Making:
    """Fills a folder, and counts how often."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, folder: Path) -> None:
        self.count += 1
        (folder / "file").write_bytes(b"whole")


def test_what_is_made_is_made_once_and_what_a_killed_process_left_is_swept_after_a_day(
    tmp_path: Path,
) -> None:
    """A second process finds it; a hundred megabytes each."""
    make, folder = Making(), tmp_path / "deep" / "model"
    old, young = folder.with_name("model-old"), folder.with_name("model-young")
    for left in (old, young):
        left.mkdir(parents=True)
    os.utime(old, (0, 0))

    assert folder == cached_conversion(make, folder) == cached_conversion(make, folder)
    assert 1 == make.count
    assert 0o755 == folder.stat().st_mode & 0o777
    assert {folder, young} == set(folder.parent.iterdir())


def test_what_is_damaged_is_made_again(tmp_path: Path) -> None:
    """A torn write, or somebody's hand."""
    make, folder = Making(), tmp_path / "model"
    cached_conversion(make, folder)
    (folder / "file").write_bytes(b"torn")

    assert folder == cached_conversion(make, folder)
    assert b"whole" == (folder / "file").read_bytes()
    (folder / "file").unlink()
    assert folder == cached_conversion(make, folder)
    for torn in ("no sums", ""):
        (folder / "crc32").write_text(torn)
        assert folder == cached_conversion(make, folder)
    (folder / "file").unlink()
    (folder / "crc32").write_text("")
    assert folder == cached_conversion(make, folder)
    assert 6 == make.count
    assert [folder] == list(tmp_path.iterdir())


@pytest.mark.parametrize("name", [".", "file", "crc32"])
def test_what_others_may_write_is_made_again(tmp_path: Path, name: str) -> None:
    """They could have changed it together with its checksum. What is made is for the owner."""
    make, folder = Making(), tmp_path / "model"
    before = os.umask(0)
    try:
        cached_conversion(make, folder)
        (folder / name).chmod(0o777)
        cached_conversion(make, folder)
        cached_conversion(make, folder)
    finally:
        os.umask(before)

    assert 2 == make.count
    assert not any(path.stat().st_mode & 0o022 for path in (folder, *folder.iterdir()))


def test_without_a_place_to_keep_it_a_passing_one_serves(tmp_path: Path) -> None:
    """As in a container whose disk can only be read."""
    make = Making()
    file = tmp_path / "file"
    file.write_text("no folder")

    for place in (file, file / "model"):
        folder = cached_conversion(make, place)
        assert (folder / "file").is_file()
        assert file != folder
        assert file not in folder.parents


def test_whoever_comes_second_takes_what_is_there(tmp_path: Path) -> None:
    """Two processes that start at once make the same."""
    folder, inner = tmp_path / "model", Making()

    def slow(own: Path) -> None:
        cached_conversion(inner, folder)
        inner(own)

    assert folder == cached_conversion(slow, folder)
    assert [folder] == list(tmp_path.iterdir())


def test_what_fails_leaves_nothing(tmp_path: Path) -> None:
    """Or each try would leave a hundred megabytes."""

    def fail(folder: Path) -> None:
        (folder / "half").write_bytes(b"half")
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="full"):
        cached_conversion(fail, tmp_path / "model")
    assert not list(tmp_path.iterdir())
