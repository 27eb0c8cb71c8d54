"""`gateway doctor`."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from gateway.cli.commands.doctor import check_models
from gateway.plugins.local import USE
from tests.apps.cli.running import Place, Ran
from tests.apps.serve.identity.conftest import running
from tests.postgres_server import PostgresServer


def checks(ran: Ran) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for item in ran.json["checks"]:
        found.setdefault(item["name"], []).append((item["verdict"], item["detail"], item["remedy"]))
    return found


def test_a_machine_without_servers_is_healthy(place: Place) -> None:
    """And is told the next step."""
    ran = place.at_home("doctor", "--json")
    data = checks(ran)

    assert (0, True) == (ran.code, ran.json["healthy"])
    assert "ok" == data["python"][0][0] == data["cache folder"][0][0]
    assert "Monty" in data["sandbox of programs"][0][1]
    assert "ok" == data["vector store"][0][0] == data["catalog store"][0][0]
    assert "warn" == data["configuration"][0][0]
    assert "gateway import" in data["configuration"][0][2]


def test_where_rows_are_to_be_in_a_database_it_is_tried(
    place: Place, postgres: PostgresServer
) -> None:
    """Without a store there, it says what is missing."""
    place.config()
    env = {"GATEWAY_INDEX_ROWS": "pgvector"}
    alone = checks(place.run("doctor", "--json", env=env))
    shared = checks(place.run("doctor", "--json", env=env | {"GATEWAY_STORE": postgres.url}))

    assert ("fail", True) == (alone["pgvector"][0][0], "PostgreSQL" in alone["pgvector"][0][1])
    assert "ok" == shared["pgvector"][0][0]


def test_each_server_is_looked_at_without_being_started(place: Place) -> None:
    """Its program, its folder, its address, its variables, its approvals."""
    place.put(
        "mcp.json",
        {
            "mcpServers": {
                "good": {"command": sys.executable},
                "near": {"command": "./run", "cwd": str(place.folder)},
                "gone": {"command": "no-such-program"},
                "lost": {"command": sys.executable, "cwd": "/no/such/folder"},
                "unset": {"command": "x", "env": {"A": "${GATEWAY_TEST_NONE}"}},
                "off": {"command": "x", "disabled": True},
                "web": {"url": "https://mcp.example/mcp"},
                "plain": {"url": "http://mcp.example/mcp"},
                "meta": {"url": "http://169.254.169.254/x"},
                "odd": {"command": sys.executable, "arsg": []},
            },
            "virtualServers": {"v": {"tools": {"a": "good/x"}}, "w": {"tools": {"a": "nobody/x"}}},
        },
    )
    program = place.put("run", "#!/bin/sh\n")
    program.chmod(0o755)
    ran = place.at_home("doctor", "--json")
    data = {name: rows[0] for name, rows in checks(ran).items()}

    assert (3, False) == (ran.code, ran.json["healthy"])
    verdicts = {
        **dict.fromkeys(("good", "near", "off", "web", "odd", "v", "w"), "ok"),
        **dict.fromkeys(("gone", "lost", "unset", "plain", "meta"), "fail"),
    }
    assert verdicts.items() <= {name.split()[-1]: row[0] for name, row in data.items()}.items()
    assert "GATEWAY_TEST_NONE" in data["server unset"][1]
    assert ["ok", "warn"] == [row[0] for row in checks(ran)["configuration"]]


def test_servers_of_the_own_network_are_named_in_the_file(place: Place) -> None:
    """By names, such as those of a compose file, and by networks."""
    servers = {
        "tracker": {"url": "http://tracker:8080/mcp"},
        "wiki": {"url": "http://10.1.2.3/mcp"},
        "other": {"url": "http://other:8080/mcp"},
        "meta": {"url": "http://169.254.169.254/mcp"},
    }
    named = {"private_hosts": ["tracker", "10.0.0.0/8", "169.254.0.0/16"]}
    place.put("mcp.json", {"mcpServers": servers, "options": {"upstream": named}})
    data = {name: rows[0] for name, rows in checks(place.at_home("doctor", "--json")).items()}

    verdicts = {name: data[f"server {name}"][0] for name in servers}
    assert {"tracker": "ok", "wiki": "ok", "other": "fail", "meta": "fail"} == verdicts


def test_what_changed_since_it_was_approved_is_reported(place: Place) -> None:
    """With the command that approves it."""
    place.run("tools", "-c", place.config({"srv": place.hostile()}))
    config = place.config({"srv": place.hostile("dressed_up")})
    place.run("tools", "-c", config)
    ran = place.run("doctor", "-c", config)

    assert 0 == ran.code
    assert "gateway approve srv srv/good" in ran.out


def test_connecting_starts_each_and_says_what_came_of_it(place: Place) -> None:
    """Only when asked to."""
    servers = {"srv": place.hostile(), "exits": place.hostile("exits_at_start")}
    config = place.config(servers)
    without = place.run("doctor", "-c", config, "--json")
    assert not (place.folder / "record").exists()
    ran = place.run("doctor", "--connect", "-c", config, "--json")
    data = checks(ran)

    assert (0, 3) == (without.code, ran.code)
    assert "ok" == data["connect srv"][0][0]
    assert data["connect srv"][0][1].startswith("1 tools in ")
    assert "fail" == data["connect exits"][0][0]


def test_identity_providers_are_asked_for_their_keys(place: Place) -> None:
    """Only when asked to; what is wrong with one is said."""
    with running() as provider:
        table = f'resource = "https://gw.example/mcp"\n[issuers.a]\nissuer = "{provider.url}'
        good = str(place.put("good.toml", f'{table}"\n'))
        sign_in = '[issuers.a.sign_in]\nclient_id = "browser"\n'
        people = str(place.put("people.toml", f'{table}"\n{sign_in}'))
        slash = str(place.put("slash.toml", f'{table}/"\n'))
        odd = str(place.put("odd.toml", f'{table}"\naudience = "x"\n'))
        without = checks(place.at_home("doctor", "--tokens", slash, "--json"))
        fetched = provider.fetches
        found = [
            place.at_home("doctor", "--connect", "--tokens", file, "--json")
            for file in (good, slash, odd, people)
        ]

    by_keys = [checks(ran).get(f"identity provider {provider.url}") for ran in found]
    wrong = checks(found[1])[f"identity provider {provider.url}/"][0]
    assert (0, "ok") == (fetched, without["callers"][0][0])
    assert [("ok", "its keys are there", ""), None, None] == [
        each and each[0] for each in by_keys[:3]
    ]
    asked = checks(found[3])[f"identity provider {provider.url}"][1]
    assert ("ok", True) == (asked[0], "https://gw.example/account/callback" in asked[1])
    assert ("fail", True) == (wrong[0], "to the letter" in wrong[1])
    assert "unknown key 'audience'" in checks(found[2])["callers"][0][1]
    assert [0, 3, 3, 0] == [ran.code for ran in found]


def test_a_broken_file_and_a_folder_that_cannot_be_written_are_faults(place: Place) -> None:
    """Each with what to do."""
    broken = place.folder / "broken.json"
    broken.write_text("{\n,")
    place.cache.write_text("in the way")
    ran = place.run("doctor", "-c", str(broken), "--json")
    data = {name: rows[0] for name, rows in checks(ran).items()}
    config = place.config({"srv": place.hostile()})
    stored = place.run("doctor", "-c", config, "--json")

    assert 2 == ran.code
    assert "line 2" in data["configuration"][1]
    assert "GATEWAY_CACHE_DIR" in data["cache folder"][2]
    assert 3 == stored.code
    assert "fail" == checks(stored)["servers"][0][0]


def test_models_that_are_missing_or_changed_are_reported(tmp_path: Path) -> None:
    """A changed weight is a fault, a missing model is not."""
    (tmp_path / "resources").mkdir()
    (tmp_path / "resources" / "weights.npz").write_text("other")
    missing = replace(USE, package="no_such_package")
    changed = replace(USE, folder=tmp_path)
    found = [item.verdict for item in check_models((missing, changed))]

    assert ["warn", "fail"] == found
    assert {"ok", "warn"} >= {item.verdict for item in check_models()}
