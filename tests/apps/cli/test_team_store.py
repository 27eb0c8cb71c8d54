"""Commands with a PostgreSQL store that the configuration or a variable refers to."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import psycopg
import pytest

from gateway.cli import OK, UNAVAILABLE, USAGE
from gateway.cli.commands.serve import serve_options
from gateway.cli.session import read_config
from tests.apps.cli.running import WITHOUT_PACKAGE, Place, child
from tests.postgres_server import PostgresServer


@pytest.fixture
def team(postgres: PostgresServer) -> Iterator[Mapping[str, str]]:
    """Environment variable with the address of an empty PostgreSQL store, to which a configuration
    can refer.
    """
    drop = "DROP SCHEMA IF EXISTS gateway CASCADE"
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(drop)
        yield {"TEAM_STORE": postgres.url}
        connection.execute(drop)


def test_commands_with_a_postgresql_store_create_no_local_file(
    place: Place, team: Mapping[str, str]
) -> None:
    reference = {"store": "env:TEAM_STORE", "usage": True}
    config = place.config({"odd": place.hostile()}, options=reference)

    def run(*command: str) -> Any:
        ran = place.run(*command, "--json", "-c", config, env=team)
        assert OK == ran.code, ran.err
        return ran.json

    output = run("index", "build")
    run("catalog", "add", "agent", "planner")
    called = place.run("call", "odd/good", "{}", "-c", config, env=team)
    run("servers", "list")
    run("approve")
    run("check", "odd/good")
    result = run("catalog", "show", "agent:catalog/planner")
    run("doctor")
    used = run("usage", "show")
    run("index", "show")
    forgotten = run("usage", "forget", "--all")

    assert "PostgreSQL store" in str(output)
    assert "sesame" not in str(output)
    assert (OK, "planner") == (called.code, result["name"])
    assert ["odd/good"] == [row["tool"] for row in used["tools"]]
    assert {"forgotten": 1} == forgotten
    assert [] == [*place.cache.glob("*.sqlite3")]


def test_machines_with_one_store_share_approvals(place: Place, team: Mapping[str, str]) -> None:
    """On the other machine, the configuration has another path and the cache contains no key."""
    env = {"GATEWAY_STORE": team["TEAM_STORE"], "GATEWAY_INSTALLATION": "prod"}
    env |= {"GATEWAY_HOST_KEY": "k" * 32}
    other = env | {"GATEWAY_CACHE_DIR": str(place.folder / "elsewhere")}
    copy = str(place.folder / "copy.json")

    def config(*behaviour: str) -> str:
        server = place.hostile(*behaviour) | {"env": {"LEVEL": "1"}}
        return place.config({"odd": server})

    place.run("tools", "-c", config(), env=env)
    shutil.copy(config(), copy)
    same = place.run("approve", "--json", "-c", copy, env=other)
    listed = place.run("tools", "--json", "-c", copy, env=other | {"GATEWAY_ON_CHANGE": "block"})
    place.run("tools", "-c", config("dressed_up"), env=env)
    changed = place.run("approve", "--json", "-c", copy, env=other)
    approved = place.run("approve", "--all", "--json", "-c", copy, env=other)
    remaining = place.run("approve", "--json", "-c", config("dressed_up"), env=env)

    both = ["odd", "odd/good"]
    assert (OK, []) == (listed.code, same.json["changed"]), listed.err
    assert [both, both, []] == [
        sorted(changed.json["changed"]),
        sorted(approved.json["approved"]),
        remaining.json["changed"],
    ]


def test_serve_names_state_that_replicas_do_not_share(
    place: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A store in a file cannot have replicas, so nothing is named."""
    config = Path(place.config({"odd": place.hostile(), "web": {"url": "https://h/mcp"}}))
    serve_options(read_config(config), frozenset(), None)
    alone = capsys.readouterr().err
    monkeypatch.setenv("GATEWAY_STORE", "postgresql://h/d")
    serve_options(read_config(config), frozenset(), None)
    shared = " ".join(capsys.readouterr().err.split())

    assert not alone
    assert "server programs are not shared: each replica starts its own odd" in shared
    assert "sign-ins are stored in files of this machine" in shared
    assert "web" not in shared


@pytest.mark.parametrize("store", ["postgresql://u:sesame@host/db", "${X:-postgresql://h/d}", 5])
def test_store_in_the_configuration_must_refer_to_a_secret(place: Place, store: object) -> None:
    """People who can write the file must not choose where approvals are stored."""
    ran = place.run("search", "x", "--json", "-c", place.config(options={"store": store}))

    assert USAGE == ran.code
    assert "options: store must refer to a secret" in ran.json["error"]["message"]
    assert "sesame" not in ran.out + ran.err


def test_unreachable_store_fails_only_commands_that_need_it(place: Place) -> None:
    env = {"GATEWAY_STORE": "postgresql://u:sesame@127.0.0.1:1/db"}
    ran = place.run("usage", "show", "--json", env=env)
    result = place.run("search", "time", "--json", "-c", place.config(), env=env)

    assert (UNAVAILABLE, "StoreError") == (ran.code, ran.json["error"]["type"])
    assert "127.0.0.1:1/db" in ran.json["error"]["message"]
    assert (OK, True) == (result.code, bool(result.json["result"]["matches"]))
    assert "sesame" not in ran.out + ran.err + result.out + result.err


def test_missing_package_for_a_postgresql_store_is_reported_with_its_extra(place: Place) -> None:
    script, env = WITHOUT_PACKAGE.format("psycopg"), {"GATEWAY_STORE": "postgresql://h/d"}
    ran = child("-c", script, "usage", "show", cwd=place.folder, env=env)

    assert USAGE == ran.code
    assert 'pip install "tool-gateway[postgres]"' in ran.err
