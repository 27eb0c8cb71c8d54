"""`gateway import`: servers of other clients, without their secrets."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import Place, Ran

SECRET = "ghp_" + "a1B2" * 9
DESKTOP = {
    "mcpServers": {
        "git hub": {
            "command": "npx",
            "args": ["-y", "some-server", "--api-key", "k3y"],
            "env": {"GITHUB_TOKEN": SECRET, "LEVEL": "2"},
        },
        "gateway": {"command": "/venv/bin/gateway", "args": ["serve"]},
        "again": {"command": "python", "args": ["-m", "gateway", "serve"]},
        "old": {"type": "sse", "url": "https://h/sse"},
        "odd": 7,
        "none": {"args": []},
    }
}


class User(Place):
    """A folder that is somebody's home, and the one where commands run."""

    def client(self, path: str, whole: object) -> Path:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(whole if isinstance(whole, str) else json.dumps(whole), "utf-8")
        return file

    def here(self, *arguments: str) -> Ran:
        home = str(self.folder)
        env = {"HOME": home, "XDG_CONFIG_HOME": f"{home}/.config"}
        with contextlib.chdir(self.folder):
            return self.run(*arguments, env=env)

    @property
    def ours(self) -> Any:
        return json.loads((self.folder / "mcp.json").read_text("utf-8"))


@pytest.fixture
def user(tmp_path: Path) -> User:
    return User(folder=tmp_path)


def outcomes(ran: Ran) -> dict[str, str]:
    return {row["name"]: row["outcome"] for row in ran.json["servers"]}


def test_servers_come_over_and_secrets_become_variables(user: User) -> None:
    """What cannot be used is told, and so is each variable that must be set."""
    user.client(".config/Claude/claude_desktop_config.json", DESKTOP)
    ran = user.here("import", "claude", "--json")

    assert 0 == ran.code
    assert {
        "git-hub": "imported",
        "gateway": "skipped",
        "again": "skipped",
        "old": "skipped",
        "odd": "skipped",
        "none": "skipped",
    } == outcomes(ran)
    assert {
        "mcpServers": {
            "git-hub": {
                "command": "npx",
                "args": ["-y", "some-server", "--api-key", "${GIT_HUB_API_KEY}"],
                "env": {"GITHUB_TOKEN": "${GITHUB_TOKEN}", "LEVEL": "2"},
            }
        }
    } == user.ours
    assert [
        {"variable": "GIT_HUB_API_KEY", "server": "git-hub", "where": "args[3]"},
        {"variable": "GITHUB_TOKEN", "server": "git-hub", "where": "env.GITHUB_TOKEN"},
    ] == ran.json["variables"]
    assert SECRET not in ran.out + ran.err + (user.folder / "mcp.json").read_text()


def test_people_read_what_became_of_each(user: User) -> None:
    """And what is to be done."""
    user.client(".config/Claude/claude_desktop_config.json", DESKTOP)
    dry = user.here("import", "claude", "--dry-run")
    ran = user.here("import", "claude")

    assert "Nothing was written to mcp.json" in dry.out
    assert "GITHUB_TOKEN  (git-hub: env.GITHUB_TOKEN)" in ran.out
    assert "called 'git hub' there" in ran.out
    assert "it is this gateway" in ran.out
    assert "written to mcp.json" in ran.out
    assert SECRET not in dry.out + ran.out


def test_all_files_of_a_client_are_read_and_the_first_of_a_name_stays(user: User) -> None:
    """The user's own, those of this project, and no other project's."""
    one, two = {"command": "one"}, {"command": "two"}
    projects = {
        str(user.folder): {"mcpServers": {"local": one}},
        "/elsewhere": {"mcpServers": {"foreign": one}},
    }
    user.client(".claude.json", {"mcpServers": {"mine": one}, "projects": projects})
    user.client(".mcp.json", {"mcpServers": {"mine": two, "shared": two}})
    ran = user.here("import", "claude", "--json")

    rows = [(row["name"], row["outcome"]) for row in ran.json["servers"]]
    assert [
        ("mine", "imported"),
        ("local", "imported"),
        ("mine", "conflict"),
        ("shared", "imported"),
    ] == rows
    assert {"mine": one, "local": one, "shared": two} == user.ours["mcpServers"]


def test_our_file_is_kept_and_conflicts_are_reported_or_replaced(user: User) -> None:
    """Twice is once; nothing of the user's is overwritten unasked."""
    user.client(
        "mcp.json",
        '{\n  // mine\n  "mcpServers": {\n    "a": {"command": "mine"} // stays\n  }\n}\n',
    )
    user.client(
        ".cursor/mcp.json",
        {
            "mcpServers": {
                "a": {"command": "theirs", "env": {"A_TOKEN": "abcdefgh"}},
                "b": {"url": "https://h/mcp", "headers": {"Authorization": "Bearer abc"}},
            }
        },
    )
    first = user.here("import", "cursor", "--json")
    second = user.here("import", "cursor", "--json")
    text = (user.folder / "mcp.json").read_text()
    third = user.here("import", "cursor", "--replace", "--json")

    assert {"a": "conflict", "b": "imported"} == outcomes(first)
    assert ["B_AUTHORIZATION"] == [item["variable"] for item in first.json["variables"]]
    assert {"a": "conflict", "b": "there"} == outcomes(second)
    assert "// mine" in text
    assert '"a": {"command": "mine"}, // stays' in text
    assert "Bearer ${B_AUTHORIZATION}" in text
    assert {"a": "replaced", "b": "there"} == outcomes(third)
    assert "theirs" in (user.folder / "mcp.json").read_text()


VSCODE = """\
{
  // As VS Code writes it.
  "inputs": [
    {"type": "promptString", "id": "api-key", "description": "Key of the API", "password": true}
  ],
  "servers": {
    "a": {
      "type": "stdio", "command": "${workspaceFolder}/run", "gallery": true, "envFile": ".env",
      "env": {
        "KEY": "${input:api-key}", "OTHER": "${input:nobody}", "HOME_DIR": "${userHome}",
        "X": "${env:X}", "P": "a${pathSeparator}b", "C": "${command:ask}",
        "R": "aB3aB3aB3aB3aB3aB3aB3aB3aB3",
      },
    },
  },
}
"""


def test_inputs_and_variables_of_vs_code_become_ours(user: User) -> None:
    """What has no meaning here is told."""
    user.client(".vscode/mcp.json", VSCODE)
    ran = user.here("import", "vscode", "--json")
    entry = user.ours["mcpServers"]["a"]

    assert f"{user.folder}/run" == entry["command"]
    assert {
        "KEY": "${API_KEY}",
        "OTHER": "${NOBODY}",
        "HOME_DIR": "${HOME}",
        "X": "${X}",
        "P": "a/b",
        "C": "${command:ask}",
        "R": "aB3" * 9,
    } == entry["env"]
    assert [("API_KEY", "Key of the API"), ("NOBODY", "the input 'nobody' of VS Code")] == [
        (item["variable"], item["where"]) for item in ran.json["variables"]
    ]
    assert [
        "a: left out: envFile",
        "a: ${command:ask} is not known here: write what it stands for",
        "a: env.R looks random; if it is a secret, write ${NAME} instead",
    ] == ran.json["notes"]


def test_settings_and_a_users_own_file_know_no_project(user: User) -> None:
    """The older place of VS Code's servers; an address of another client."""
    servers = {"a": {"command": "${workspaceFolder}/x"}, "b": {"serverUrl": "https://h/mcp"}}
    file = user.client("settings.json", {"mcp": {"servers": servers, "inputs": [7, {"id": 7}]}})
    ran = user.here("import", "vscode", "--from", str(file), "--json")

    assert {"a": "imported", "b": "imported"} == outcomes(ran)
    assert ["a: ${workspaceFolder} is not known here: write what it stands for"] == ran.json[
        "notes"
    ]
    assert {"url": "https://h/mcp"} == user.ours["mcpServers"]["b"]


def test_equal_secrets_share_a_variable_and_different_ones_do_not(user: User) -> None:
    """Of one name, in several servers."""
    table = {
        name: {"command": "x", "env": {"API_KEY": value}, "disabled": False}
        for name, value in (("a", "one"), ("b", "one"), ("c", "two"), ("c.", "three"))
    }
    table["d"] = {"url": "https://h/mcp?token=four"}
    file = user.client("x.json", {"mcpServers": table})
    user.here("import", "cursor", "--from", str(file))

    servers = user.ours["mcpServers"]
    assert ["${API_KEY}", "${API_KEY}", "${C_API_KEY}"] == [
        servers[name]["env"]["API_KEY"] for name in "abc"
    ]
    assert "https://h/mcp?token=${D_URL}" == servers["d"]["url"]


def test_nothing_to_import_is_reported_and_a_broken_file_too(user: User) -> None:
    """With its place."""
    nothing = user.here("import", "vscode")
    missing = user.here("import", "vscode", "--from", "none.json")
    broken = user.here("import", "vscode", "--from", str(user.client("x.json", "{\n,")))
    user.client("mcp.json", '{"mcpServers": []}')
    ours = user.here("import", "vscode", "--from", str(user.client("x.json", DESKTOP)))
    user.client("mcp.json", "[]")
    list_ = user.here("import", "vscode", "--from", str(user.client("x.json", DESKTOP)))

    assert [1, 2, 2, 2, 2] == [item.code for item in (nothing, missing, broken, ours, list_)]
    assert "--from PATH" in nothing.out
    assert "none.json" in missing.err
    assert "line 2, column 1" in broken.err
    assert "'mcpServers' must be an object" in ours.err
    assert "needs an object 'mcpServers'" in list_.err
