"""`gateway servers`."""

from __future__ import annotations

import json

import pytest

from tests.apps.cli.running import Place

TEXT = """\
{
  // mine
  "mcpServers": {
    "a": {"command": "x"} // stays
  }
}
"""


def test_servers_remove_restores_the_file_that_servers_add_changed(place: Place) -> None:
    file = place.put("mcp.json", TEXT)
    options = ("servers", "add", "b", "-e", "LEVEL=2", "--cwd", "/w")
    command = ("--", "run", "-v", "--token", "s3cret")
    first = place.at_home(*options, *command)
    text = file.read_text()
    second = place.at_home(*options, "--json", *command)
    replaced = place.at_home("servers", "add", "b", "--replace", "--json", "--", "other")
    removed = place.at_home("servers", "remove", "b")

    assert (0, 0, 0) == (first.code, second.code, removed.code)
    assert "set B_TOKEN" in first.err
    assert "gateway servers test b" in first.err
    assert {"command": "other"} == replaced.json["entry"]
    entry = {"command": "run", "args": ["-v", "--token", "${B_TOKEN}"], "cwd": "/w"}
    assert {**entry, "env": {"LEVEL": "2"}} == second.json["entry"]
    assert ["B_TOKEN"] == [item["variable"] for item in second.json["variables"]]
    assert "s3cret" not in text
    assert TEXT == file.read_text()


def test_servers_add_writes_a_server_address_to_a_new_file(place: Place) -> None:
    """Header values that look random are reported as secrets."""
    headers = {"Authorization": "Bearer ${TOKEN}", "X": "aB3" * 9}
    options = [f"-H{name}: {value}" for name, value in headers.items()]
    ran = place.at_home("servers", "add", "web", "--url", "https://h/mcp", *options)

    assert {"mcpServers": {"web": {"url": "https://h/mcp", "headers": headers}}} == place.own_config
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
            {"type": "oauth", "scope": "read write", "client_id": "me", "client_secret": "${S}",
             "callback_port": 8931},
        ),
    ],
)  # fmt: skip
def test_servers_add_writes_sign_in_options_and_names_the_next_command(
    place: Place, options: tuple[str, ...], auth: dict[str, object]
) -> None:
    ran = place.at_home("servers", "add", "web", "--url", "https://h/mcp", *options)
    data = place.at_home("servers", "add", "web", "--url", "https://h/mcp", *options, "--json")

    assert {"mcpServers": {"web": {"url": "https://h/mcp", "auth": auth}}} == place.own_config
    assert ("gateway login web" in ran.err) == (auth["type"] == "oauth")
    assert auth == data.json["entry"]["auth"]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("b", "--oauth", "--", "x"), "give --url"),
        (("b", "--url", "https://h", "--oauth", "--bearer-env", "T"), "not both"),
        (("b", "--url", "https://h", "--bearer-env", "s3cret-token"), "name of a variable"),
        (("b", "--url", "https://h", "--oauth-set", "colour=red"), "'colour'"),
        (("b", "--url", "https://h", "--oauth-set", "client_secret=s3"), "such as env:NAME"),
        (("b", "--url", "https://h", "--oauth-set", "callback_port=x"), "callback_port"),
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
def test_servers_add_refuses_an_invalid_server_without_writing(
    place: Place, arguments: tuple[str, ...], named: str
) -> None:
    file = place.put("mcp.json", TEXT)
    ran = place.at_home("servers", "add", *arguments)

    assert 2 == ran.code
    assert named in ran.err
    assert TEXT == file.read_text()


def test_servers_remove_deletes_all_named_servers_or_none(place: Place) -> None:
    """Virtual servers are removed in the same way."""
    virtual = {"v": {"tools": {"x": "a/y"}}}
    file = place.put("mcp.json", {"servers": {"a": {"command": "x"}}, "virtualServers": virtual})
    before = file.read_text()
    wrong = place.at_home("servers", "remove", "a", "b")
    unchanged = file.read_text()
    ran = place.at_home("servers", "remove", "a", "v", "--json")

    assert (2, before) == (wrong.code, unchanged)
    assert "no server 'b' is configured; configured servers: " in wrong.err
    assert ["a", "v"] == ran.json["removed"]
    assert {"servers": {}, "virtualServers": {}} == place.own_config


def test_servers_list_shows_stored_state_without_starting_servers(place: Place) -> None:
    virtual = {"v": {"tools": {"best": "srv/good"}}}
    place.run("tools", "-c", place.config({"srv": place.hostile()}, virtualServers=virtual))
    (place.folder / "record").unlink()
    config = place.config(
        {
            "srv": place.hostile("dressed_up"),
            "new": {"url": "https://h:8443/secret-path"},
            "off": {"command": "x", "disabled": True},
            "bad": {"command": "x", "arsg": [], "env": {"A": "${GATEWAY_TEST_NONE}"}},
        },
        virtualServers={**virtual, "broken": {}},
    )
    listed = place.run("servers", "list", "-c", config)
    output = {
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
        for name, item in output.items()
    }
    assert "https://h:8443" == output["new"]["target"]
    assert "GATEWAY_TEST_NONE" in output["bad"]["detail"]
    assert "GATEWAY_TEST_NONE" in listed.out
    assert "secret-path" not in listed.out


def test_servers_list_shows_changed_tools_and_the_age_of_listings(place: Place) -> None:
    place.run("tools", "-c", place.config({"srv": place.hostile()}))
    config = place.config({"srv": place.hostile("dressed_up")})
    place.run("tools", "-c", config)
    ran = place.run("servers", "list", "-c", config)
    (known,) = place.run("servers", "list", "-c", config, "--json").json["servers"]

    assert ("listed", 1, "changed") == (known["state"], known["tools"], known["pins"])
    assert ["srv", "srv/good"] == known["changed"]
    assert {"good", "server:srv"} == set(known["digests"])
    assert "srv, srv/good" in ran.out


def test_servers_list_without_servers_suggests_a_next_step(place: Place) -> None:
    place.put("mcp.json", {"mcpServers": {}})
    ran = place.at_home("servers", "list")
    missing = place.at_home("servers", "remove", "x", "-c", "none.json")

    assert (1, 2) == (ran.code, missing.code)
    assert "gateway servers add" in ran.out


def test_servers_test_starts_servers_and_reports_times_and_problems(place: Place) -> None:
    """Virtual servers are tested by starting the servers of their tools."""
    config = place.config(
        {"srv": place.hostile(), "gone": {"command": "no-such-program"}, "bad": {"args": []}},
        virtualServers={"v": {"tools": {"best": "srv/good"}}},
    )
    one = place.run("servers", "test", "v", "-c", config, "--json")
    every = place.run("servers", "test", "-c", config, "--json")
    output = place.run("servers", "test", "srv", "gone", "-c", config)
    unknown = place.run("servers", "test", "x", "-c", config)

    assert (0, 3, 3, 2) == (one.code, every.code, output.code, unknown.code)
    assert [("v", True, ["best"])] == [
        (item["name"], item["works"], item["tools"]) for item in one.json["servers"]
    ]
    done = {item["name"]: item for item in every.json["servers"]}
    assert {"srv": True, "gone": False, "v": True, "bad": False} == {
        name: item["works"] for name, item in done.items()
    }
    assert done["srv"]["seconds"] > 0
    assert "command 'no-such-program' was not found" in json.dumps(done["gone"]["diagnostics"])
    assert "yes" in output.out
    assert "no-such-program" in output.out
    assert "no server 'x' is configured; configured servers: srv" in unknown.err
