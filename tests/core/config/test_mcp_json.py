"""Parsing of `mcp.json`."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.config.mcp_json import parse_manifest, read_manifest
from gateway.errors import ConfigError
from gateway.mcp import HttpServer, StdioServer
from gateway.sources import Alias, Describe, Filter, Prefix, Rename, VirtualServer

VARIABLE = "GATEWAY_TEST_TOKEN"


@pytest.fixture
def token() -> Iterator[str]:
    """Set an environment variable that configurations can refer to, and yield its value."""
    os.environ[VARIABLE] = "s3cret"
    yield os.environ[VARIABLE]
    del os.environ[VARIABLE]


def write_config(folder: Path, whole: object) -> Path:
    path = folder / "mcp.json"
    path.write_text(json.dumps(whole), "utf-8")
    return path


def warnings_for(entry: object) -> list[str]:
    """Return the warnings for a configuration file with *entry* as its only server."""
    return [note.detail for note in parse_manifest({"mcpServers": {"it": entry}}).warnings]


def test_stdio_and_http_servers_are_read(tmp_path: Path) -> None:
    entry = {"command": "run", "args": ["-v"], "env": {"A": "b"}, "cwd": "/w", "type": "stdio"}
    path = write_config(
        tmp_path, {"mcpServers": {"a": entry, "b": {"url": "http://h/mcp", "headers": {"X": "y"}}}}
    )

    manifest = read_manifest(path)

    assert {
        "a": StdioServer(command="run", args=("-v",), env={"A": "b"}, cwd=Path("/w")),
        "b": HttpServer(url="http://h/mcp", headers={"X": "y"}),
    } == manifest.servers
    assert () == manifest.warnings


def test_configuration_with_vs_codes_key_or_byte_order_mark_is_accepted(tmp_path: Path) -> None:
    """Several clients may share one file, and use different keys for the table of servers."""
    path = tmp_path / "mcp.json"
    path.write_bytes(b'\xef\xbb\xbf{"servers": {"a": {"command": "run"}}, "inputs": []}')

    manifest = read_manifest(path)

    assert ["a"] == list(manifest.servers)
    assert () == manifest.warnings


@pytest.mark.parametrize(
    "text",
    [
        '{"mcpServers": {"time": {"command": "good"}, "time": {"command": "evil"}}}',
        '{"mcpServers": {"time": {"command": "good"}, "time": {"command": "evil"}}, /* 5 */}',
        '{"mcpServers": {"a": {"env": {"time": "1", "time": "1"}, "command": "good"}}}',
        '{"time": 1, "mcpServers": {}, "time": 1}',
    ],
)
def test_two_servers_of_the_same_name_are_refused(tmp_path: Path, text: str) -> None:
    """If the last server of this name silently won, a person who reads the first would approve the
    wrong command.
    """
    path = tmp_path / "mcp.json"
    path.write_text(text, "utf-8")

    with pytest.raises(ConfigError, match=r"mcp.json' has 'time' twice in one object: remove one"):
        read_manifest(path)


def test_disabled_server_is_omitted_without_a_warning() -> None:
    manifest = parse_manifest({"mcpServers": {"a": {"command": "run", "disabled": True}}})

    assert ({}, ()) == (manifest.servers, manifest.warnings)


def test_server_is_trusted_only_if_the_file_says_true() -> None:
    servers = {
        "friend": {"command": "run", "trusted": True},
        "stranger": {"command": "run"},
        "odd": {"command": "run", "trusted": "yes"},
    }
    manifest = parse_manifest({"mcpServers": servers})

    assert {"friend"} == manifest.trusted
    assert ("odd",) == manifest.unusable


def test_references_resolve_to_environment_variables_or_defaults(token: str) -> None:
    """Secrets can then stay outside the file."""
    manifest = parse_manifest(
        {
            "mcpServers": {
                "a": {
                    "command": "run",
                    "args": ["${GATEWAY_TEST_TOKEN}", "${GATEWAY_TEST_NONE:-else}"],
                    "env": {"T": "x-${env:GATEWAY_TEST_TOKEN}"},
                }
            }
        }
    )

    assert (
        StdioServer(command="run", args=(token, "else"), env={"T": f"x-{token}"})
        == (manifest.servers["a"])
    )


@pytest.mark.parametrize(
    ("entry", "named"),
    [
        ({"command": "run", "args": ["${GATEWAY_TEST_NONE}"]}, "GATEWAY_TEST_NONE"),
        ({"args": []}, "needs a 'command'"),
        ({"type": "ws", "url": "http://h/ws"}, "'ws' is not supported"),
        ({"command": ""}, "command must be a text"),
        ({"command": "run", "args": "-v"}, "args must be a list"),
        ({"command": "run", "env": {"A": 1}}, "env.A must be a text"),
        ({"url": "nonsense"}, "url must look like"),
        ("run", "must be an object"),
    ],
)
def test_invalid_server_is_a_warning_with_a_remedy(entry: object, named: str) -> None:
    (warning,) = warnings_for(entry)

    assert named in warning
    assert 1 == warning.count("server 'it'")


def test_invalid_server_does_not_affect_the_others() -> None:
    manifest = parse_manifest({"mcpServers": {"b": 7, "good": {"command": "run"}}})

    assert ["good"] == list(manifest.servers)
    assert 1 == len(manifest.warnings)


def test_unknown_key_in_the_configuration_is_a_warning() -> None:
    """Otherwise nobody would notice that a misspelt key has no effect."""
    manifest = parse_manifest({"mcpServers": {"a": {"command": "r", "arsg": []}}, "mcpServer": {}})

    assert ["unknown key 'mcpServer'", "unknown key 'arsg' is ignored"] == [
        note.detail.partition(": ")[2] for note in manifest.warnings
    ]


@pytest.mark.parametrize(
    ("content", "named"),
    [
        (b"{", "not JSON: line 1, column 2"),
        (b"[]", "needs an object 'mcpServers'"),
        (b'{"mcpServers": []}', "needs an object 'mcpServers'"),
        (b"\xff\xfe", "cannot be read"),
    ],
)
def test_file_without_a_server_table_is_refused(tmp_path: Path, content: bytes, named: str) -> None:
    """The error names the file and, for invalid JSON, the position."""
    path = tmp_path / "mcp.json"
    path.write_bytes(content)

    with pytest.raises(ConfigError, match=r"mcp\.json") as caught:
        read_manifest(path)

    assert named in str(caught.value)


def test_missing_configuration_error_names_path_and_remedy(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"or name another file$"):
        read_manifest(tmp_path / "none.json")


def test_transforms_and_virtual_servers_are_read() -> None:
    """Transforms keep their order of application. A bare list of tools means ``allow``."""
    tools = {
        "allow": ["get_*"],
        "deny": ["*_x"],
        "prefix": "p_",
        "rename": {"get_a": "a"},
        "describe": {"get_a": "Text."},
    }
    alias = {"tool": "a/get_a", "description": "Mine.", "pin": "ab"}
    manifest = parse_manifest(
        {
            "mcpServers": {
                "a": {"command": "run", "tools": tools},
                "b": {"url": "http://h/mcp", "tools": ["*"]},
                "c": {"command": "run"},
            },
            "virtualServers": {
                "v": {"description": "Work.", "tools": {"one": "b/x", "two": alias}},
                "w": {"disabled": True},
            },
        }
    )

    assert {
        "a": (
            Filter(allow=("get_*",), deny=("*_x",)),
            Describe({"get_a": "Text."}),
            Rename({"get_a": "a"}),
            Prefix("p_"),
        ),
        "b": (Filter(allow=("*",)),),
    } == manifest.transforms
    two = Alias(of="a/get_a", description="Mine.", pin="ab")
    expected = VirtualServer(
        name="v", tools={"one": Alias(of="b/x"), "two": two}, description="Work."
    )
    assert {"v": expected} == manifest.virtual
    assert ((), ()) == (manifest.warnings, manifest.unusable)


def test_resources_and_prompts_have_separate_transforms() -> None:
    entry = {"command": "run", "resources": {"deny": ["db:*"]}, "prompts": {"prefix": "p_"}}
    manifest = parse_manifest({"mcpServers": {"a": entry}})
    moved = parse_manifest({"mcpServers": {"a": {**entry, "resources": {"prefix": "p_"}}}})

    transforms = (Filter(deny=("db:*",), kind="resource"), Prefix("p_", kind="prompt"))
    assert {"a": transforms} == manifest.transforms
    assert (("a",), True) == (
        moved.unusable,
        "resources: unknown key 'prefix'" in moved.warnings[0].detail,
    )


@pytest.mark.parametrize(
    ("tools", "named"),
    [
        ("x", "tools must be an object"),
        ({"alow": []}, "unknown key 'alow'"),
        ({"allow": "get_*"}, "tools.allow must be a list"),
        ({"deny": [7]}, "tools.deny[0] must be a text"),
        ({"rename": ["a"]}, "tools.rename must be an object"),
        ({"rename": {"a": "no name"}}, "'no name' cannot be used"),
        ({"prefix": 7}, "tools.prefix must be a text"),
    ],
)
def test_invalid_transforms_make_the_server_unusable(tools: object, named: str) -> None:
    """Otherwise tools would be shown that the host wanted to hide."""
    manifest = parse_manifest({"mcpServers": {"it": {"command": "run", "tools": tools}}})

    assert ({}, ("it",)) == (manifest.servers, manifest.unusable)
    assert named in manifest.warnings[0].detail


@pytest.mark.parametrize(
    ("entry", "named"),
    [
        (7, "must be an object"),
        ({}, "needs 'tools', 'resources' or 'prompts'"),
        ({"tools": {"a": 7}}, "tools.a must be an object"),
        ({"tools": {"a": "b"}}, "server/tool, not 'b'"),
        ({"prompts": ["a"]}, "prompts must be an object"),
        ({"resources": {"a": "b/c:d"}}, "is a URI"),
        ({"tools": {"a": {"tool": "b/c", "pin": 7}}}, "pin must be a text"),
    ],
)
def test_invalid_virtual_server_is_a_warning(entry: object, named: str) -> None:
    manifest = parse_manifest({"mcpServers": {}, "virtualServers": {"v": entry}})

    assert ({}, ("v",)) == (manifest.virtual, manifest.unusable)
    assert named in manifest.warnings[0].detail


def test_virtual_server_must_not_share_a_servers_name() -> None:
    """Otherwise an id could refer to two tools."""
    virtual = {"a": {"tools": {"x": "a/y"}}}
    manifest = parse_manifest({"mcpServers": {"a": {"command": "r"}}, "virtualServers": virtual})

    assert "has the same name as a server" in manifest.warnings[0].detail
    with pytest.raises(ConfigError, match="'virtualServers' must be an object"):
        parse_manifest({"mcpServers": {}, "virtualServers": []})


def test_configuration_files_of_other_clients_keep_their_meaning(tmp_path: Path) -> None:
    """Such files have names with spaces, files of variables, and variables of editors."""
    (tmp_path / ".env").write_text('export KEY="a b"\nLEVEL=2 # low\nPLAIN=$KEY\n', "utf-8")
    entry = {
        "command": "${workspaceFolder}/run",
        "args": ["${workspaceFolderBasename}", "a${/}b", "${userHome}"],
        "envFile": "${workspaceFolder}/.env",
        "env": {"LEVEL": "3", "NAME": "${env:GATEWAY_TEST_NONE:-x}"},
    }
    (tmp_path / ".vscode").mkdir()
    path = write_config(tmp_path / ".vscode", {"servers": {"git hub": entry}})
    manifest = read_manifest(path)
    server = manifest.servers["git-hub"]

    assert isinstance(server, StdioServer)
    assert f"{tmp_path}/run" == server.command
    assert (tmp_path.name, "a/b", str(Path.home())) == server.args
    assert {"KEY": "a b", "LEVEL": "3", "PLAIN": "$KEY", "NAME": "x"} == server.env
    assert ["server 'git hub' is called 'git-hub' here"] == [
        note.detail for note in manifest.warnings
    ]
    before = server.approval_digest(b"k")
    (tmp_path / ".env").write_text("KEY=other\n", "utf-8")
    assert before != read_manifest(path).servers["git-hub"].approval_digest(b"k")


def test_input_variables_of_editors_are_refused(tmp_path: Path) -> None:
    """Only editors know their values, so the server would receive them literally."""
    variable, mend = "${input:key}", "write ${NAME} in its place, and set NAME"
    assert [
        f"mcp.json: server 'it': only an editor can fill in {variable}: {mend}"
    ] == warnings_for({"url": "https://h/mcp", "headers": {"X": "Bearer ${input:key}"}})
    assert ["mcp.json: server 'it': envFile '/none/.env' cannot be read: "] == [
        note.removesuffix("No such file or directory")
        for note in warnings_for({"command": "x", "envFile": "/none/.env"})
    ]


def test_server_whose_converted_name_is_taken_is_reported() -> None:
    """The second server would hide the first."""
    table = {"a b": {"command": "x"}, "a-b": {"command": "y"}}
    manifest = parse_manifest({"mcpServers": table})

    assert (["a-b"], ("a b",)) == (list(manifest.servers), manifest.unusable)
    assert (
        "server 'a b' becomes 'a-b', the name of another server: rename it"
        in manifest.warnings[0].detail
    )
