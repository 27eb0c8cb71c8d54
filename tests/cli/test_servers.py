"""`gateway servers`: the configuration, one server at a time."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from gateway.cli.commands.servers import age_text
from tests.cli.running import Place
from tests.cli.test_import import User
from tests.mcp.conftest import HERE

TEXT = """\
{
  // mine
  "mcpServers": {
    "a": {"command": "x"} // stays
  }
}
"""


@pytest.fixture
def user(tmp_path: Path) -> User:
    return User(folder=tmp_path)


def entry(place: Place, mode: str = "plain", **more: object) -> dict[str, object]:
    args = [str(HERE / "hostile.py"), mode, str(place.folder / "record")]
    return {"command": sys.executable, "args": args, **more}


def test_a_server_is_added_and_taken_out_and_the_rest_stays(user: User) -> None:
    """Byte for byte; twice is once."""
    file = user.client("mcp.json", TEXT)
    options = ("servers", "add", "b", "-e", "LEVEL=2", "--cwd", "/w")
    command = ("--", "run", "-v", "--token", "s3cret")
    first = user.here(*options, *command)
    text = file.read_text()
    second = user.here(*options, "--json", *command)
    removed = user.here("servers", "remove", "b")

    assert (0, 0, 0) == (first.code, second.code, removed.code)
    assert "set B_TOKEN" in first.err
    assert "gateway servers test b" in first.out
    assert {
        "command": "run",
        "args": ["-v", "--token", "${B_TOKEN}"],
        "env": {"LEVEL": "2"},
        "cwd": "/w",
    } == second.json["entry"]
    assert ["B_TOKEN"] == [item["variable"] for item in second.json["variables"]]
    assert "s3cret" not in text
    assert TEXT == file.read_text()


def test_an_address_is_added_to_a_file_that_is_not_there_yet(user: User) -> None:
    """With its headers; what looks random is told."""
    ran = user.here(
        "servers", "add", "web", "--url", "https://h/mcp",
        "-H", "Authorization: Bearer ${TOKEN}", "-H", f"X: {'aB3' * 9}",
    )  # fmt: skip

    headers = {"Authorization": "Bearer ${TOKEN}", "X": "aB3" * 9}
    assert {"mcpServers": {"web": {"url": "https://h/mcp", "headers": headers}}} == user.ours
    assert "looks random" in ran.err


@pytest.mark.parametrize(
    ("options", "auth"),
    [
        (("--bearer-env", "TOKEN"), {"type": "bearer", "token": "env:TOKEN"}),
        (("--oauth",), {"type": "oauth"}),
        (
            (
                "--oauth-set", "scope=read write", "--oauth-set", "client_id=me",
                "--oauth-set", "client_secret=${S}", "--oauth-set", "callback_port=8931",
            ),
            {
                "type": "oauth",
                "scope": "read write",
                "client_id": "me",
                "client_secret": "${S}",
                "callback_port": 8931,
            },
        ),
    ],
)  # fmt: skip
def test_how_a_server_signs_in_is_written_too(
    user: User, options: tuple[str, ...], auth: dict[str, object]
) -> None:
    """And whoever has to sign in is told how."""
    ran = user.here("servers", "add", "web", "--url", "https://h/mcp", *options)
    data = user.here("servers", "add", "web", "--url", "https://h/mcp", *options, "--json")

    assert {"mcpServers": {"web": {"url": "https://h/mcp", "auth": auth}}} == user.ours
    assert ("gateway login web" in ran.err) == (auth["type"] == "oauth")
    assert auth == data.json["entry"]["auth"]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("b", "--oauth", "--", "x"), "give --url"),
        (("b", "--url", "https://h", "--oauth", "--bearer-env", "T"), "not both"),
        (("b", "--url", "https://h", "--bearer-env", "s3cret-token"), "name of a variable"),
        (("b", "--url", "https://h", "--oauth-set", "colour=red"), "KEY one of"),
        (("b", "--url", "https://h", "--oauth-set", "client_secret=s3"), "such as env:NAME"),
        (("b", "--url", "https://h", "--oauth-set", "callback_port=x"), "a whole number"),
        (("b", "--url", "https://h", "--oauth-set", "store=cloud"), "'file' or 'keyring'"),
        (("b", "--url", "https://h", "--oauth-set", "client_secret=env:S"), "with a client_id"),
        (("b",), "a program after '--'"),
        (("b", "--url", "https://h/mcp", "--", "x"), "a program after '--'"),
        (("b", "-e", "NAME", "--", "x"), "NAME=VALUE"),
        (("b", "--url", "https://h/mcp", "-H", "x"), "'Name: value'"),
        (("b", "--url", "nonsense"), "url must look like"),
        (("no name", "--", "x"), "cannot be used"),
        (("a", "--", "y"), "--replace"),
    ],
)
def test_what_cannot_be_a_server_is_refused(
    user: User, arguments: tuple[str, ...], named: str
) -> None:
    """And nothing is written."""
    file = user.client("mcp.json", TEXT)
    ran = user.here("servers", "add", *arguments)

    assert 2 == ran.code
    assert named in ran.err
    assert TEXT == file.read_text()


def test_one_of_that_name_is_replaced_on_demand(user: User) -> None:
    """Where it stands."""
    file = user.client("mcp.json", TEXT)
    user.here("servers", "add", "a", "--replace", "--", "y")

    assert "// stays" in file.read_text()
    assert '"y"' in file.read_text()


def test_removing_takes_virtual_ones_too_and_all_or_none(user: User) -> None:
    """A misspelt name changes nothing."""
    virtual = {"v": {"tools": {"x": "a/y"}}}
    file = user.client("mcp.json", {"servers": {"a": {"command": "x"}}, "virtualServers": virtual})
    before = file.read_text()
    wrong = user.here("servers", "remove", "a", "b")
    unchanged = file.read_text()
    ran = user.here("servers", "remove", "a", "v", "--json")

    assert (2, before) == (wrong.code, unchanged)
    assert "'b' is no configured server" in wrong.err
    assert ["a", "v"] == ran.json["removed"]
    assert {"servers": {}, "virtualServers": {}} == user.ours


def test_the_list_says_what_is_known_and_starts_nothing(place: Place) -> None:
    """State, tools, pins; the reason where one cannot be used."""
    virtual = {"v": {"tools": {"best": "srv/good"}}}
    place.run("tools", "-c", place.config({"srv": entry(place)}, virtualServers=virtual))
    (place.folder / "record").unlink()
    config = place.config(
        {
            "srv": entry(place, "dressed_up"),
            "new": {"url": "https://h:8443/secret-path"},
            "off": {"command": "x", "disabled": True},
            "bad": {"command": "x", "arsg": [], "env": {"A": "${GATEWAY_TEST_NONE}"}},
        },
        virtualServers={**virtual, "broken": {}},
    )
    listed = place.run("servers", "list", "-c", config)
    shown = {
        item["name"]: item
        for item in place.run("servers", "list", "-c", config, "--json").json["servers"]
    }

    assert not (place.folder / "record").exists()
    assert {
        "srv": ("program", "never listed", None, "none"),
        "new": ("address", "never listed", None, "none"),
        "off": ("", "disabled", None, "none"),
        "bad": ("", "unusable", None, "none"),
        "v": ("virtual", "listed", 1, "kept"),
        "broken": ("", "unusable", None, "none"),
    } == {
        name: (item["kind"], item["state"], item["tools"], item["pins"])
        for name, item in shown.items()
    }
    assert "https://h:8443" == shown["new"]["target"]
    assert "GATEWAY_TEST_NONE" in shown["bad"]["detail"]
    assert "GATEWAY_TEST_NONE" in listed.out
    assert "secret-path" not in listed.out


def test_the_list_shows_what_changed_and_how_old_it_is(place: Place) -> None:
    """Before anything is started again."""
    place.run("tools", "-c", place.config({"srv": entry(place)}))
    config = place.config({"srv": entry(place, "dressed_up")})
    place.run("tools", "-c", config)
    ran = place.run("servers", "list", "-c", config)
    (known,) = place.run("servers", "list", "-c", config, "--json").json["servers"]

    assert ("listed", 1, "changed", ["srv", "srv/good"]) == (
        known["state"],
        known["tools"],
        known["pins"],
        known["changed"],
    )
    assert ["good", "server:srv"] == list(known["digests"])
    assert "changed: srv, srv/good" in ran.out
    assert "s ago" in ran.out


def test_nothing_configured_is_reported(user: User) -> None:
    """With the next step."""
    user.client("mcp.json", {"mcpServers": {}})
    ran = user.here("servers", "list")
    missing = user.here("servers", "remove", "x", "-c", "none.json")

    assert (1, 2) == (ran.code, missing.code)
    assert "gateway servers add" in ran.out


def test_a_test_starts_lists_times_and_says_what_is_wrong(place: Place) -> None:
    """Virtual ones through those behind them."""
    config = place.config(
        {
            "srv": entry(place),
            "gone": {"command": "no-such-program"},
            "bad": {"args": []},
        },
        virtualServers={"v": {"tools": {"best": "srv/good"}}},
    )
    one = place.run("servers", "test", "v", "-c", config, "--json")
    every = place.run("servers", "test", "-c", config, "--json")
    shown = place.run("servers", "test", "srv", "gone", "-c", config)
    unknown = place.run("servers", "test", "x", "-c", config)

    assert (0, 3, 3, 2) == (one.code, every.code, shown.code, unknown.code)
    assert [("v", True, ["best"])] == [
        (item["name"], item["works"], item["tools"]) for item in one.json["servers"]
    ]
    done = {item["name"]: item for item in every.json["servers"]}
    assert {"srv": True, "gone": False, "v": True, "bad": False} == {
        name: item["works"] for name, item in done.items()
    }
    assert done["srv"]["seconds"] > 0
    assert "command 'no-such-program' was not found" in json.dumps(done["gone"]["diagnostics"])
    assert "works" in shown.out
    assert "fails" in shown.out
    assert "'x' is no configured server" in unknown.err


def test_how_long_ago_is_reported_in_the_largest_unit() -> None:
    """A person wants no seconds of last week."""
    assert ["59 s ago", "2 min ago", "1 h ago", "7 d ago"] == [
        age_text(seconds) for seconds in (59, 125, 3600, 7 * 86400)
    ]
