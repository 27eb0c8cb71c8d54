"""`gateway import`: servers of other clients, without their secrets."""

from __future__ import annotations

from tests.apps.cli.running import Place, Ran

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


def outcomes(ran: Ran) -> dict[str, str]:
    return {row["name"]: row["outcome"] for row in ran.json["servers"]}


def test_import_writes_servers_with_secrets_as_variables(place: Place) -> None:
    """The command reports unusable servers, and variables that the user has to set."""
    place.put(".config/Claude/claude_desktop_config.json", DESKTOP)
    ran = place.at_home("import", "claude", "--json")

    assert 0 == ran.code
    skipped = dict.fromkeys(("gateway", "again", "odd", "none"), "skipped")
    assert {"git-hub": "imported", "old": "imported", **skipped} == outcomes(ran)
    entry = {
        "command": "npx",
        "args": ["-y", "some-server", "--api-key", "${GIT_HUB_API_KEY}"],
        "env": {"GITHUB_TOKEN": "${GIT_HUB_GITHUB_TOKEN}", "LEVEL": "2"},
    }
    old = {"url": "https://h/sse", "type": "sse"}
    assert {"mcpServers": {"git-hub": entry, "old": old}} == place.own_config
    assert [
        {"variable": "GIT_HUB_API_KEY", "server": "git-hub", "where": "args[3]"},
        {"variable": "GIT_HUB_GITHUB_TOKEN", "server": "git-hub", "where": "env.GITHUB_TOKEN"},
    ] == ran.json["variables"]
    assert SECRET not in ran.out + ran.err + (place.folder / "mcp.json").read_text()


def test_import_reads_all_files_of_a_client(place: Place) -> None:
    """Of servers with one name, the first is imported. Files of other projects are not read."""
    one, two = {"command": "one"}, {"command": "two"}
    projects = {
        str(place.folder): {"mcpServers": {"local": one}},
        "/elsewhere": {"mcpServers": {"foreign": one}},
    }
    place.put(".claude.json", {"mcpServers": {"mine": one}, "projects": projects})
    place.put(".mcp.json", {"mcpServers": {"mine": two, "shared": two}})
    ran = place.at_home("import", "claude", "--json")

    rows = [f"{row['name']} {row['outcome']}" for row in ran.json["servers"]]
    assert ["mine imported", "local imported", "mine conflict", "shared imported"] == rows
    assert {"mine": one, "local": one, "shared": two} == place.own_config["mcpServers"]


def test_import_reports_or_replaces_servers_with_an_existing_name(place: Place) -> None:
    """A second import of the same servers changes nothing."""
    place.put(
        "mcp.json",
        '{\n  // mine\n  "mcpServers": {\n    "a": {"command": "mine"} // stays\n  }\n}\n',
    )
    place.put(
        ".cursor/mcp.json",
        {
            "mcpServers": {
                "a": {"command": "theirs", "env": {"A_TOKEN": "abcdefgh"}},
                "b": {"url": "https://h/mcp", "headers": {"Authorization": "Bearer abc"}},
            }
        },
    )
    first = place.at_home("import", "cursor", "--json")
    second = place.at_home("import", "cursor", "--json")
    text = (place.folder / "mcp.json").read_text()
    third = place.at_home("import", "cursor", "--replace", "--json")

    assert {"a": "conflict", "b": "imported"} == outcomes(first)
    assert ["B_AUTHORIZATION"] == [item["variable"] for item in first.json["variables"]]
    assert {"a": "conflict", "b": "there"} == outcomes(second)
    assert "// mine" in text
    assert '"a": {"command": "mine"}, // stays' in text
    assert "Bearer ${B_AUTHORIZATION}" in text
    assert {"a": "replaced", "b": "there"} == outcomes(third)
    assert "theirs" in (place.folder / "mcp.json").read_text()


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


def test_import_converts_inputs_and_variables_of_vs_code(place: Place) -> None:
    place.put(".vscode/mcp.json", VSCODE)
    ran = place.at_home("import", "vscode", "--json")
    entry = place.own_config["mcpServers"]["a"]

    assert f"{place.folder}/run" == entry["command"]
    assert ".env" == entry["envFile"]
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
        "a: ${command:ask} is not known here: write what it stands for",
        "a: env.R looks random; if it is a secret, write ${NAME} instead",
    ] == ran.json["notes"]


def test_import_of_a_users_own_vs_code_file_knows_no_workspace_folder(place: Place) -> None:
    servers = {"a": {"command": "${workspaceFolder}/x"}, "b": {"serverUrl": "https://h/mcp"}}
    file = place.put("settings.json", {"mcp": {"servers": servers, "inputs": [7, {"id": 7}]}})
    ran = place.at_home("import", "vscode", "--from", str(file), "--json")

    assert {"a": "imported", "b": "imported"} == outcomes(ran)
    assert ["a: ${workspaceFolder} is not known here: write what it stands for"] == ran.json[
        "notes"
    ]
    assert {"url": "https://h/mcp"} == place.own_config["mcpServers"]["b"]


def test_import_gives_equal_secrets_of_two_servers_two_variables(place: Place) -> None:
    """The result does not depend on the order of imports."""
    table = {
        name: {"command": "x", "env": {"API_KEY": value}, "disabled": False}
        for name, value in (("a", "one"), ("b", "one"), ("c", "two"), ("c.", "three"))
    }
    table["d"] = {"url": "https://h/mcp?token=four"}
    file = place.put("x.json", {"mcpServers": table})
    place.at_home("import", "cursor", "--from", str(file))

    servers = place.own_config["mcpServers"]
    assert ["${A_API_KEY}", "${B_API_KEY}", "${C_API_KEY}"] == [
        servers[name]["env"]["API_KEY"] for name in "abc"
    ]
    assert "https://h/mcp?token=${D_URL}" == servers["d"]["url"]


def test_import_reports_missing_servers_and_broken_files(place: Place) -> None:
    nothing = place.at_home("import", "vscode")
    missing = place.at_home("import", "vscode", "--from", "none.json")
    broken = place.at_home("import", "vscode", "--from", str(place.put("x.json", "{\n,")))
    place.put("mcp.json", '{"mcpServers": []}')
    ours = place.at_home("import", "vscode", "--from", str(place.put("x.json", DESKTOP)))
    place.put("mcp.json", "[]")
    list_ = place.at_home("import", "vscode", "--from", str(place.put("x.json", DESKTOP)))

    assert [1, 2, 2, 2, 2] == [item.code for item in (nothing, missing, broken, ours, list_)]
    assert "--from PATH" in nothing.out
    assert "none.json" in missing.err
    assert "line 2, column 1" in broken.err
    assert "'mcpServers' must be an object" in ours.err
    assert "does not contain a JSON object" in list_.err


def test_import_gives_equal_secret_names_of_two_servers_two_variables(place: Place) -> None:
    """One variable API_KEY for all servers would be right for only one of them."""
    keys = {name: {"command": "x", "env": {"API_KEY": f"{name}-secret-1"}} for name in "abc"}
    place.put(".cursor/mcp.json", {"mcpServers": {"a": keys["a"], "b": keys["b"]}})
    place.put(".claude.json", {"mcpServers": {"c": keys["c"]}})
    ran = [place.at_home("import", client, "--json") for client in ("cursor", "claude")]

    names = ["A_API_KEY", "B_API_KEY", "C_API_KEY"]
    assert names == [item["variable"] for each in ran for item in each.json["variables"]]
    entries = place.own_config["mcpServers"].values()
    assert [f"${{{name}}}" for name in names] == [entry["env"]["API_KEY"] for entry in entries]
