"""Cache of converted model files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gateway.plugins.local import cached_conversion


class Making:
    """Conversion of model files that writes one file and counts its calls."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, folder: Path) -> None:
        self.count += 1
        (folder / "file").write_bytes(b"whole")


def test_conversion_runs_once_and_abandoned_folders_are_deleted_after_a_day(tmp_path: Path) -> None:
    """Killed processes leave temporary folders of a hundred megabytes each."""
    make, folder = Making(), tmp_path / "deep" / "model"
    old, young = folder.with_name("model-old"), folder.with_name("model-young")
    for abandoned in (old, young):
        abandoned.mkdir(parents=True)
    os.utime(old, (0, 0))

    assert folder == cached_conversion(make, folder) == cached_conversion(make, folder)
    assert 1 == make.count
    assert 0o755 == folder.stat().st_mode & 0o777
    assert {folder, young} == set(folder.parent.iterdir())


def test_damaged_model_files_are_converted_again(tmp_path: Path) -> None:
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
def test_model_files_that_others_may_write_are_converted_again(tmp_path: Path, name: str) -> None:
    """Other users could change a file together with its checksum."""
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


def test_unwritable_cache_uses_a_temporary_folder(tmp_path: Path) -> None:
    """For example in a container with a read-only disk."""
    make = Making()
    file = tmp_path / "file"
    file.write_text("no folder")

    for place in (file, file / "model"):
        folder = cached_conversion(make, place)
        assert (folder / "file").is_file()
        assert file != folder
        assert file not in folder.parents


def test_concurrent_conversions_use_the_files_of_the_first(tmp_path: Path) -> None:
    folder, inner = tmp_path / "model", Making()

    def slow(own: Path) -> None:
        cached_conversion(inner, folder)
        inner(own)

    assert folder == cached_conversion(slow, folder)
    assert [folder] == list(tmp_path.iterdir())


def test_failed_conversion_leaves_no_files(tmp_path: Path) -> None:
    """Otherwise each attempt would leave a hundred megabytes."""

    def fail(folder: Path) -> None:
        (folder / "half").write_bytes(b"half")
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="full"):
        cached_conversion(fail, tmp_path / "model")
    assert not list(tmp_path.iterdir())
