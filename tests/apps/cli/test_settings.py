"""Options without Python: the configuration, the environment and ``--set``."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from gateway.cli import OK, USAGE
from gateway.cli.settings import option_table
from tests.apps.cli.running import Place, Ran
from tests.test_docs import rows

_ELSEWHERE = {"catalog.kinds", "catalog.rules", "policies"}
"""Tables of their own in the file."""
_FLAGS = {"HttpOptions"}
"""Those of `gateway serve` alone: each is an option of the command itself."""
_WAYS = ("file", "environment", "--set")


def _run(place: Place, way: str, key: str, value: object) -> Ran:
    """Search with one option set in one of the three ways."""
    section, _, name = key.partition(".")
    table = {section: {name: value}} if name else {section: value}
    config = place.config(options=table if way == "file" else {})
    chosen = ("--set", f"{key}={value}") if way == "--set" else ()
    variable = {f"GATEWAY_{key.upper().replace('.', '_')}": str(value)}
    env = variable if way == "environment" else {}
    command = ("search", "what time is it", "--strategy", "graph", "-c", config, "--json")
    return place.run(*command, *chosen, env=env)


def test_every_documented_option_can_be_set_and_every_settable_one_is_documented() -> None:
    """The key is the name of the class in small letters, without Options, and the option."""
    documented = {
        f"{owner.removesuffix('Options').lower()}.{name}".removeprefix(".")
        for owner, _, name in (row.partition(".") for row in rows("options.md"))
        if owner.endswith("Options") and owner not in _FLAGS
    }
    sections = {key.partition(".")[0] for key in option_table() if "." in key}

    assert documented - sections - _ELSEWHERE == set(option_table())


@pytest.mark.parametrize("way", _WAYS)
def test_an_option_is_set_in_three_ways(place: Place, way: str) -> None:
    both, one = _run(place, "file", "search.limit", 2), _run(place, way, "search.limit", 1)

    assert (OK, 2) == (both.code, len(both.json["result"]["matches"]))
    assert (OK, 1) == (one.code, len(one.json["result"]["matches"]))


_NEAR = "there is no such option: did you mean 'search.limit'?"
_RANGE = "expected int from 1, got"


@pytest.mark.parametrize(
    ("way", "key", "value", "message"),
    [
        ("file", "search.limti", 1, f"options: search.limti: {_NEAR}"),
        ("file", "serch.limit", 1, f"options: serch.limit: {_NEAR}"),
        ("--set", "searchlimit", 1, f"--set searchlimit: {_NEAR}"),
        ("file", "search.limit", 0, f"options: search.limit: {_RANGE} 0"),
        ("file", "search.limit", "8", f"options: search.limit: {_RANGE} '8'"),
        ("--set", "search.limit", 0, f"--set search.limit: {_RANGE} '0'"),
        ("environment", "search.limit", "x", f"GATEWAY_SEARCH_LIMIT: {_RANGE} 'x'"),
        ("file", "search.limit", 60, "search.max_limit must be at least limit (60)"),
        ("environment", "usage", "maybe", "GATEWAY_USAGE: expected bool, got 'maybe'"),
        ("file", "policies", 1, "it is a table of its own in the file: 'policies'"),
        ("file", "plugins", ["local"], "it is a table of its own in the file: 'plugins'"),
        ("file", "audit.record", "off", "it is taken from GATEWAY_AUDIT_RECORD or --set"),
        ("file", "catalog.rules", 1, "it is a table of its own in the file: 'rules'"),
        ("file", "installation", "a", "is taken from GATEWAY_INSTALLATION or --set, not from"),
        ("file", "chat.confirm", "never", "is taken from GATEWAY_CHAT_CONFIRM or --set, not from"),
        ("file", "programs.destructive", True, "is taken from GATEWAY_PROGRAMS_DESTRUCTIVE or"),
        ("file", "upstream.on_change", "warn", "is taken from GATEWAY_UPSTREAM_ON_CHANGE or --set"),
        ("file", "host_key", "k" * 32, "options: host_key must refer to a secret"),
        ("file", "public_url", "https://a", "is taken from GATEWAY_PUBLIC_URL or --set"),
        ("--set", "public_url", "http://a", "public_url must be an https address"),
        ("file", "catalog_store_path", "a", "is taken from GATEWAY_CATALOG_STORE_PATH or --set"),
        ("file", "provision.enough", 0.1, "is taken from GATEWAY_PROVISION_ENOUGH or --set, not"),
        ("file", "search", 1, "options: search: there is no such option"),
    ],
)
def test_a_fault_names_the_key_and_a_near_one(
    place: Place, way: str, key: str, value: object, message: str
) -> None:
    ran = _run(place, way, key, value)

    error = ran.json["error"]
    assert (USAGE, "ConfigError") == (ran.code, error["type"])
    assert message in error["message"]
    assert "SearchOptions" not in error["message"]


def test_the_command_line_wins_over_the_environment_and_that_over_the_file(place: Place) -> None:
    command = ("search", "", "--strategy", "graph", "--json", "-c")
    env = {"GATEWAY_SEARCH_LIMIT": "1"}

    of_environment = place.run(*command, place.config(options={"search": {"limit": 2}}), env=env)
    of_command = place.run(*command, place.config(), "--set", "search.limit=2", env=env)
    refused = place.run(*command, place.config(options={"search": {"limit": 0}}), env=env)

    counts = [len(ran.json["result"]["matches"]) for ran in (of_environment, of_command)]
    assert [1, 2] == counts
    assert USAGE == refused.code


def test_a_mistyped_variable_is_named(place: Place) -> None:
    command = ("search", "", "--strategy", "graph", "-c", place.config())
    ran = place.run(*command, env={"GATEWAY_SEARCH_LIMTI": "1"})

    assert OK == ran.code
    assert "GATEWAY_SEARCH_LIMTI is no option: did you mean GATEWAY_SEARCH_LIMIT?" in ran.err


@pytest.mark.parametrize("way", [{"usage": True}, {"usage": {"record": True}}])
def test_calls_are_noted_once_that_is_turned_on(place: Place, way: Mapping[str, object]) -> None:
    arguments = ("call", "time/get_current_time", '{"timezone": "Europe/Kyiv"}', "-c")
    place.run(*arguments, place.config())
    before = place.run("usage", "show", "--json").json
    place.run(*arguments, place.config(options=way))
    after = place.run("usage", "show", "--json").json

    assert ([], ["time/get_current_time"]) == (before["tools"], [t["tool"] for t in after["tools"]])


def test_an_option_of_provisioning_is_set_beside_what_the_server_needs(place: Place) -> None:
    ran = place.run(
        *("provision", "tell the time", "-c", place.config(), "--json"),
        *("--set", "provision.candidates=0", "--set", "KEY=env:KEY"),
    )

    assert USAGE == ran.code
    assert "provision.candidates: expected int from 1" in ran.json["error"]["message"]


def test_what_is_logged_is_shown_on_demand(place: Place) -> None:
    config = place.config({"srv": place.hostile("garbage")})
    quiet = place.run("servers", "test", "-c", config)
    loud = place.run("servers", "test", "-c", config, "-v")

    line = "gateway.upstream: srv: a warning on the side"
    assert (False, True) == (line in quiet.err, line in loud.err)
