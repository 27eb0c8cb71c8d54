"""`gateway install` and `gateway uninstall`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.apps.cli.running import TIME, Place

FILE = {
    "claude": ".config/Claude/claude_desktop_config.json",
    "cursor": ".cursor/mcp.json",
    "vscode": ".config/Code/User/mcp.json",
}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """Folder with a configuration that refers to an environment variable."""
    place = Place(folder=tmp_path)
    place.put("mcp.json", {"mcpServers": {"time": {**TIME, "env": {"X": "${SOME_NAME}"}}}})
    return place


@pytest.mark.parametrize("client", list(FILE))
def test_uninstall_restores_the_client_file_that_install_changed(place: Place, client: str) -> None:
    """`install` makes a dated backup, and changes nothing else in the client's file."""
    key = "servers" if client == "vscode" else "mcpServers"
    text = f'{{\n  // theirs\n  "{key}": {{\n    "a": {{"command": "x"}} // a\n  }}\n}}\n'
    file = place.put(FILE[client], text)
    file.chmod(0o640)
    first = place.at_home("install", client, "--json")
    inside = file.read_text()
    second = place.at_home("install", client, "--json")
    removed = place.at_home("uninstall", client, "--json")
    absent = place.at_home("uninstall", client, "--json")

    backup = Path(first.json["backup"])
    assert ["installed", "there", "removed", "absent"] == [
        item.json["done"] for item in (first, second, removed, absent)
    ]
    assert "// theirs" in inside
    entry = json.loads(inside.replace("// theirs", "").replace("// a", ""))[key]["gateway"]
    assert ["serve", "--config", str(place.folder / "mcp.json")] == entry["args"][-3:]
    assert ("stdio" if client == "vscode" else None) == entry.get("type")
    assert (text, text) == (backup.read_text(), file.read_text())
    assert backup.name.startswith(f"{file.name}.2")
    assert ".bak" == backup.suffix
    assert 0o640 == file.stat().st_mode & 0o777 == backup.stat().st_mode & 0o777
    assert second.json["backup"] is None


def test_install_creates_a_missing_client_file_and_names_required_variables(place: Place) -> None:
    ran = place.at_home("install", "claude")

    assert 0 == ran.code
    assert "SOME_NAME" in ran.out
    assert "restart the client" in ran.err
    assert ["gateway"] == list(
        json.loads((place.folder / FILE["claude"]).read_text())["mcpServers"]
    )


def test_second_install_replaces_the_configuration_path_unless_dry_run(place: Place) -> None:
    place.at_home("install", "claude", "--project")
    file = place.folder / ".mcp.json"
    other = place.put("other.json", {"mcpServers": {}})
    before = file.read_text()
    dry = place.at_home(
        "install", "claude", "--to", str(file), "-c", str(other), "--dry-run", "--json"
    )
    unchanged = file.read_text()
    anew = place.at_home("install", "claude", "--to", str(file), "-c", str(other), "--json")

    assert before == unchanged
    assert ("replaced", True) == (dry.json["done"], dry.json["dry_run"])
    assert anew.json["backup"]
    assert str(other) in file.read_text()


def test_install_does_not_change_other_entries_of_the_client_file(place: Place) -> None:
    """`install` also refuses a gateway whose configuration cannot be read."""
    file = place.put("x.json", {"mcpServers": {"gateway": {"command": "docker"}, "a": 7}})
    before = file.read_text()
    taken = place.at_home("install", "cursor", "--to", str(file))
    unremoved = place.at_home("uninstall", "cursor", "--to", str(file))
    missing = place.at_home("install", "cursor", "-c", "none.json")
    folder = place.at_home("install", "cursor", "--to", str(place.folder))

    assert [2, 2, 2, 2] == [item.code for item in (taken, unremoved, missing, folder)]
    assert "--name" in taken.err
    assert before == file.read_text()
    assert "none.json" in missing.err
    assert "cannot be read" in folder.err


def test_install_with_take_over_moves_servers_and_uninstall_restores_them(place: Place) -> None:
    """Secrets stay in the client's file, as variables of the gateway's entry."""
    secret = "ghp_" + "a1B2" * 9
    hub = f'{{"command": "npx", "env": {{"API_KEY": "{secret}"}}}}'
    text = f'{{\n  "mcpServers": {{\n    "git hub": {hub}, // mine\n    "odd": 7\n  }}\n}}\n'
    file = place.put(FILE["claude"], text)
    dry = place.at_home("install", "claude", "--take-over", "--dry-run", "--json")
    untouched = file.read_text(), place.own_config
    moved = place.at_home("install", "claude", "--take-over", "--json")
    again = place.at_home("install", "claude", "--take-over", "--json")
    servers = json.loads(file.read_text())["mcpServers"]
    entry = place.own_config["mcpServers"]["git-hub"]
    back = place.at_home("uninstall", "claude", "--json")

    assert (["git hub"], ["git hub"]) == (dry.json["moved"], moved.json["moved"])
    assert (text, ["time"]) == (untouched[0], list(untouched[1]["mcpServers"]))
    assert ["odd", "gateway"] == list(servers)
    assert secret == servers["gateway"]["env"]["GIT_HUB_API_KEY"]
    assert {"command": "npx", "env": {"API_KEY": "${GIT_HUB_API_KEY}"}} == entry
    assert ["SOME_NAME"] == moved.json["variables"]
    assert secret not in (place.folder / "mcp.json").read_text() + moved.out + moved.err
    assert ("there", []) == (again.json["done"], again.json["moved"])
    assert (["git hub"], text) == (back.json["restored"], file.read_text())
    assert (
        "'odd' was not moved: it is no object"
        in place.at_home("install", "claude", "--take-over").err
    )


def test_uninstall_keeps_changes_that_the_user_made_after_install(place: Place) -> None:
    file = place.put(FILE["cursor"], {"mcpServers": {"a": {"command": "x"}}})
    place.at_home("install", "cursor", "--take-over")
    table = json.loads(file.read_text())
    table["mcpServers"]["b"] = {"command": "y"}
    place.put(FILE["cursor"], table)
    place.at_home("uninstall", "cursor")

    assert {"a": {"command": "x"}, "b": {"command": "y"}} == json.loads(file.read_text())[
        "mcpServers"
    ]


def test_install_names_servers_that_the_client_still_shows_next_to_the_gateway(
    place: Place,
) -> None:
    place.put(FILE["cursor"], {"mcpServers": {"a": {"command": "x"}}})
    ran = place.at_home("install", "cursor")

    assert "cursor still shows its own servers (a) next to the gateway; --take-over" in ran.err
