"""The key by which command lines are digested."""

from __future__ import annotations

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from gateway.storage.approval_key import approval_key


def test_the_key_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    """However many make it at once; nothing else is left in the folder."""
    path = tmp_path / "new" / "approvals.key"
    with ThreadPoolExecutor(16) as threads:
        keys = set(threads.map(approval_key, [path] * 64))

    assert 1 == len(keys)
    assert 32 == len(keys.pop())
    assert 0o600 == stat.S_IMODE(path.stat().st_mode)
    assert [path] == [*path.parent.iterdir()]


def test_where_no_file_can_be_each_key_is_another(tmp_path: Path) -> None:
    """So nothing passes for approved."""
    (tmp_path / "file").write_text("in the way")
    path = tmp_path / "file" / "approvals.key"

    assert approval_key(path) != approval_key(path)
