"""Files that are written whole or not at all."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gateway.config import add_server, backup_path, read_text, server_names, undo_edit, write_text
from gateway.errors import ConfigError

AT = datetime(2026, 11, 22, 7, 8, 9, tzinfo=UTC)


def test_copies_are_dated_and_never_overwritten(tmp_path: Path) -> None:
    """Two within one second too."""
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


def test_a_link_stays_a_link_and_a_mark_stays_a_mark(tmp_path: Path) -> None:
    """Dotfiles are often links; some editors mark UTF-8."""
    file, link = tmp_path / "a", tmp_path / "b"
    file.write_bytes(b"\xef\xbb\xbf1")
    link.symlink_to(file)
    write_text(link, "2", expected=read_text(link))

    assert (True, b"\xef\xbb\xbf2") == (link.is_symlink(), file.read_bytes())


def test_a_change_of_somebody_else_is_not_overwritten(tmp_path: Path) -> None:
    """Clients write their files too."""
    file = tmp_path / "a"
    file.write_text("theirs")

    with pytest.raises(ConfigError, match="changed meanwhile"):
        write_text(file, "ours", expected="before")
    assert "theirs" == file.read_text()


def test_what_cannot_be_read_or_written_is_told(tmp_path: Path) -> None:
    """By its name."""
    file = tmp_path / "a"
    file.write_bytes(b"\xff")

    with pytest.raises(ConfigError, match=r"'.*a' cannot be read"):
        read_text(file)
    with pytest.raises(ConfigError, match=r"cannot be (read|written)"):
        write_text(file / "b", "x", expected="")


def test_adding_a_server_changes_nothing_else(tmp_path: Path) -> None:
    """Order, other keys, the table's name and the file's mode stay."""
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
def test_a_configuration_that_cannot_be_added_to_stays_as_it_is(tmp_path: Path, text: str) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(text)

    with pytest.raises(ConfigError):
        add_server(path, "c", {})
    assert text == path.read_text()


def test_an_edit_is_taken_back(tmp_path: Path) -> None:
    """The file as it was; what somebody else wrote meanwhile stays."""
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
