"""`gateway install`: ourselves in another client's file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.running import TIME
from tests.cli.test_import import User

FILE = {
    "claude": ".config/Claude/claude_desktop_config.json",
    "cursor": ".cursor/mcp.json",
    "vscode": ".config/Code/User/mcp.json",
}


@pytest.fixture
def user(tmp_path: Path) -> User:
    user = User(folder=tmp_path)
    user.client("mcp.json", {"mcpServers": {"time": {**TIME, "env": {"X": "${SOME_NAME}"}}}})
    return user


@pytest.mark.parametrize("client", list(FILE))
def test_we_come_into_the_file_once_and_go_out_again(user: User, client: str) -> None:
    """With a dated copy of what was there; the rest stays byte for byte."""
    key = "servers" if client == "vscode" else "mcpServers"
    text = f'{{\n  // theirs\n  "{key}": {{\n    "a": {{"command": "x"}} // a\n  }}\n}}\n'
    file = user.client(FILE[client], text)
    file.chmod(0o640)
    first = user.here("install", client, "--json")
    inside = file.read_text()
    second = user.here("install", client, "--json")
    removed = user.here("install", client, "--remove", "--json")
    absent = user.here("install", client, "--remove", "--json")

    backup = Path(first.json["backup"])
    assert ["installed", "there", "removed", "absent"] == [
        item.json["done"] for item in (first, second, removed, absent)
    ]
    assert "// theirs" in inside
    entry = json.loads(inside.replace("// theirs", "").replace("// a", ""))[key]["gateway"]
    assert ["serve", "--config", str(user.folder / "mcp.json")] == entry["args"][-3:]
    assert ("stdio" if client == "vscode" else None) == entry.get("type")
    assert (text, text) == (backup.read_text(), file.read_text())
    assert backup.name.startswith(f"{file.name}.2")
    assert ".bak" == backup.suffix
    assert 0o640 == file.stat().st_mode & 0o777 == backup.stat().st_mode & 0o777
    assert second.json["backup"] is None


def test_a_file_that_is_not_there_is_made_and_what_the_client_must_know_is_reported(
    user: User,
) -> None:
    """Nothing to copy; the variables that our configuration refers to."""
    ran = user.here("install", "claude")

    assert 0 == ran.code
    assert "SOME_NAME" in ran.err
    assert "restart the client" in ran.out
    assert ["gateway"] == list(json.loads((user.folder / FILE["claude"]).read_text())["mcpServers"])


def test_another_configuration_is_installed_anew_and_a_dry_run_writes_nothing(user: User) -> None:
    """A project's own file, any other file."""
    user.here("install", "claude", "--project")
    file = user.folder / ".mcp.json"
    other = user.client("other.json", {"mcpServers": {}})
    before = file.read_text()
    dry = user.here("install", "claude", "--to", str(file), "-c", str(other), "--dry-run")
    unchanged = file.read_text()
    anew = user.here("install", "claude", "--to", str(file), "-c", str(other))

    assert before == unchanged
    assert "dry run: 'gateway' would be installed anew in" in dry.out
    assert "what it held before" in anew.out
    assert str(other) in file.read_text()


def test_what_is_not_ours_is_never_touched(user: User) -> None:
    """Nor is anything installed that could not run."""
    file = user.client("x.json", {"mcpServers": {"gateway": {"command": "docker"}, "a": 7}})
    before = file.read_text()
    taken = user.here("install", "cursor", "--to", str(file))
    kept = user.here("install", "cursor", "--to", str(file), "--remove")
    missing = user.here("install", "cursor", "-c", "none.json")
    folder = user.here("install", "cursor", "--to", str(user.folder))

    assert [2, 2, 2, 2] == [item.code for item in (taken, kept, missing, folder)]
    assert "--name" in taken.err
    assert before == file.read_text()
    assert "none.json" in missing.err
    assert "cannot be read" in folder.err
