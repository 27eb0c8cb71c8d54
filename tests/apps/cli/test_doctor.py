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
    result: dict[str, list[Any]] = {}
    for item in ran.json["checks"]:
        result.setdefault(item["name"], []).append(
            (item["verdict"], item["detail"], item["remedy"])
        )
    return result


def test_doctor_reports_no_fault_without_servers(place: Place) -> None:
    ran = place.at_home("doctor", "--json")
    data = checks(ran)

    assert (0, True) == (ran.code, ran.json["healthy"])
    assert "ok" == data["python"][0][0] == data["cache folder"][0][0]
    assert "Monty" in data["sandbox of programs"][0][1]
    assert "ok" == data["vector store"][0][0] == data["catalog store"][0][0]
    assert "warn" == data["configuration"][0][0]
    assert "gateway import" in data["configuration"][0][2]


def test_doctor_checks_that_the_store_can_store_rows_of_entities(
    place: Place, postgres: PostgresServer
) -> None:
    """Only a PostgreSQL store can. For other stores, the remedy is named."""
    place.config()
    env = {"GATEWAY_INDEX_ROWS": "pgvector"}
    alone = checks(place.run("doctor", "--json", env=env))
    shared = checks(place.run("doctor", "--json", env=env | {"GATEWAY_STORE": postgres.url}))

    assert ("fail", True) == (alone["pgvector"][0][0], "PostgreSQL" in alone["pgvector"][0][1])
    assert "ok" == shared["pgvector"][0][0]


def test_doctor_checks_servers_without_starting_them(place: Place) -> None:
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


def test_doctor_accepts_private_addresses_that_the_configuration_allows(place: Place) -> None:
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


def test_doctor_reports_servers_that_changed_since_their_approval(place: Place) -> None:
    place.run("tools", "-c", place.config({"srv": place.hostile()}))
    config = place.config({"srv": place.hostile("dressed_up")})
    place.run("tools", "-c", config)
    ran = place.run("doctor", "-c", config)

    assert 0 == ran.code
    assert "gateway approve srv srv/good" in ran.out


def test_doctor_with_connect_starts_servers(place: Place) -> None:
    servers = {"srv": place.hostile(), "exits": place.hostile("exits_at_start")}
    config = place.config(servers)
    without = place.run("doctor", "-c", config, "--json")
    assert not (place.folder / "record").exists()
    ran = place.run("doctor", "--connect", "-c", config, "--json")
    data = checks(ran)

    assert (0, 3) == (without.code, ran.code)
    assert "ok" == data["connect srv"][0][0]
    assert data["connect srv"][0][1].startswith("1 tool in ")
    assert "fail" == data["connect exits"][0][0]


def test_doctor_with_connect_fetches_keys_of_identity_providers(place: Place) -> None:
    with running() as provider:
        table = f'resource = "https://gw.example/mcp"\n[issuers.a]\nissuer = "{provider.url}'
        good = str(place.put("good.toml", f'{table}"\n'))
        sign_in = '[issuers.a.sign_in]\nclient_id = "browser"\n'
        people = str(place.put("people.toml", f'{table}"\n{sign_in}'))
        slash = str(place.put("slash.toml", f'{table}/"\n'))
        odd = str(place.put("odd.toml", f'{table}"\naudience = "x"\n'))
        without = checks(place.at_home("doctor", "--tokens", slash, "--json"))
        fetched = provider.fetches
        result = [
            place.at_home("doctor", "--connect", "--tokens", file, "--json")
            for file in (good, slash, odd, people)
        ]

    by_keys = [checks(ran).get(f"identity provider {provider.url}") for ran in result]
    wrong = checks(result[1])[f"identity provider {provider.url}/"][0]
    assert (0, "ok") == (fetched, without["callers"][0][0])
    assert [("ok", "its keys can be read", ""), None, None] == [
        key and key[0] for key in by_keys[:3]
    ]
    asked = checks(result[3])[f"identity provider {provider.url}"][1]
    assert ("ok", True) == (asked[0], "https://gw.example/account/callback" in asked[1])
    assert ("fail", True) == (wrong[0], "configure the issuer exactly as written there" in wrong[1])
    assert "unknown key 'audience'" in checks(result[2])["callers"][0][1]
    assert [0, 3, 3, 0] == [ran.code for ran in result]


def test_doctor_reports_a_broken_configuration_and_an_unwritable_cache_folder(place: Place) -> None:
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


def test_doctor_reports_missing_and_changed_files_of_embedding_models(tmp_path: Path) -> None:
    """A changed file is a failure, a missing model only a warning."""
    (tmp_path / "resources").mkdir()
    (tmp_path / "resources" / "weights.npz").write_text("other")
    missing = replace(USE, package="no_such_package")
    changed = replace(USE, folder=tmp_path)
    result = [item.verdict for item in check_models((missing, changed))]

    assert ["warn", "fail"] == result
    assert {"ok", "warn"} >= {item.verdict for item in check_models()}
