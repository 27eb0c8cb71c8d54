"""Atomic edits of configuration files."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gateway.config import add_server, backup_path, read_text, server_names, undo_edit, write_text
from gateway.errors import ConfigError

AT = datetime(2026, 11, 22, 7, 8, 9, tzinfo=UTC)


def test_backup_path_contains_the_date_and_is_never_an_existing_file(tmp_path: Path) -> None:
    """Two backups within one second get different names."""
    file = tmp_path / "a.json"
    created = write_text(file, "1", expected="", backup=backup_path(file, AT))
    first = write_text(file, "2", expected="1", backup=backup_path(file, AT))
    second = write_text(file, "3", expected="2", backup=backup_path(file, AT))

    assert (None, "3", 0o600) == (created, read_text(file), file.stat().st_mode & 0o777)
    assert first is not None
    assert second is not None
    assert [("a.json.20261122-070809.bak", "1"), ("a.json.20261122-070809-2.bak", "2")] == [
        (item.name, item.read_text()) for item in (first, second)
    ]
    assert 3 == len(list(tmp_path.iterdir()))


def test_edit_keeps_links_and_byte_order_marks(tmp_path: Path) -> None:
    """Configuration files are often symbolic links, and some editors mark UTF-8."""
    file, link = tmp_path / "a", tmp_path / "b"
    file.write_bytes(b"\xef\xbb\xbf1")
    link.symlink_to(file)
    write_text(link, "2", expected=read_text(link))

    assert (True, b"\xef\xbb\xbf2") == (link.is_symlink(), file.read_bytes())


def test_edit_does_not_overwrite_concurrent_changes(tmp_path: Path) -> None:
    """Other programs, such as MCP clients, write the file too."""
    file = tmp_path / "a"
    file.write_text("theirs")

    with pytest.raises(ConfigError, match="changed meanwhile"):
        write_text(file, "ours", expected="before")
    assert "theirs" == file.read_text()


def test_error_names_the_file_that_cannot_be_read_or_written(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_bytes(b"\xff")

    with pytest.raises(ConfigError, match=r"'.*a' cannot be read"):
        read_text(file)
    with pytest.raises(ConfigError, match=r"cannot be (read|written)"):
        write_text(file / "b", "x", expected="")


def test_add_server_keeps_the_rest_of_the_file(tmp_path: Path) -> None:
    """The order, other keys, the name of the table of servers, and the mode of the file stay."""
    path = tmp_path / "mcp.json"
    path.write_text('{"inputs": [1], "servers": {"b": {"url": "u"}, "a": {}}}')
    path.chmod(0o600)
    linked = tmp_path / "linked.json"
    linked.symlink_to(path)

    add_server(linked, "c", {"command": "é"})

    assert {
        "inputs": [1],
        "servers": {"b": {"url": "u"}, "a": {}, "c": {"command": "é"}},
    } == json.loads(path.read_text("utf-8"))
    assert (0o600, True) == (path.stat().st_mode & 0o777, linked.is_symlink())
    assert ["linked.json", "mcp.json"] == sorted(item.name for item in tmp_path.iterdir())
    assert {"a", "b", "c"} == server_names(path)


@pytest.mark.parametrize("text", ["{", "[]", '{"mcpServers": []}', '{"mcpServers": {"c": {}}}'])
def test_add_server_leaves_an_invalid_file_unchanged(tmp_path: Path, text: str) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(text)

    with pytest.raises(ConfigError):
        add_server(path, "c", {})
    assert text == path.read_text()


def test_undo_edit_restores_the_file_but_keeps_later_changes(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    created = add_server(path, "c", {})
    undo_edit(created)
    gone = path.exists()
    undo_edit(created)

    path.write_text('{"a": 1}\n')
    edit = add_server(path, "c", {})
    undo_edit(edit)
    as_it_was = path.read_text()
    mine = add_server(path, "c", {})
    add_server(path, "d", {})
    undo_edit(mine)

    assert not gone
    assert '{"a": 1}\n' == as_it_was
    assert {"a": 1, "mcpServers": {"d": {}}} == json.loads(path.read_text())
