"""Options set without Python: in the configuration, in the environment and by ``--set``."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from gateway.cli import OK, USAGE
from gateway.cli.settings import option_table
from tests.apps.cli.running import Place, Ran
from tests.test_docs import rows

_ELSEWHERE = {"catalog.kinds", "catalog.rules", "policies"}
"""Options that have tables of their own in the configuration."""
_FLAGS = {"HttpOptions"}
"""Classes whose fields are options of `gateway serve`, not of the configuration."""
_WAYS = ("file", "environment", "--set")


def _run(place: Place, way: str, key: str, value: object) -> Ran:
    """Run a search with the option *key* set to *value*, in the way that *way* names."""
    section, _, name = key.partition(".")
    table = {section: {name: value}} if name else {section: value}
    config = place.config(options=table if way == "file" else {})
    chosen = ("--set", f"{key}={value}") if way == "--set" else ()
    variable = {f"GATEWAY_{key.upper().replace('.', '_')}": str(value)}
    env = variable if way == "environment" else {}
    command = ("search", "what time is it", "--strategy", "graph", "-c", config, "--json")
    return place.run(*command, *chosen, env=env)


def test_documentation_lists_exactly_the_options_that_can_be_set() -> None:
    """A key is the class name without "Options" in small letters, and the option."""
    documented = {
        f"{owner.removesuffix('Options').lower()}.{name}".removeprefix(".")
        for owner, _, name in (row.partition(".") for row in rows("options.md"))
        if owner.endswith("Options") and owner not in _FLAGS
    }
    sections = {key.partition(".")[0] for key in option_table() if "." in key}

    assert documented - sections - _ELSEWHERE == set(option_table())


@pytest.mark.parametrize("way", _WAYS)
def test_option_can_be_set_in_file_environment_and_command_line(place: Place, way: str) -> None:
    both, one = _run(place, "file", "search.limit", 2), _run(place, way, "search.limit", 1)

    assert (OK, 2) == (both.code, len(both.json["result"]["matches"]))
    assert (OK, 1) == (one.code, len(one.json["result"]["matches"]))


_NEAR = "unknown option: did you mean 'search.limit'?"
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
        ("file", "policies", 1, "set it in its own table of the file: 'policies'"),
        ("file", "plugins", ["local"], "set it in its own table of the file: 'plugins'"),
        ("file", "audit.record", "off", "set it by GATEWAY_AUDIT_RECORD or --set"),
        ("file", "catalog.rules", 1, "set it in its own table of the file: 'rules'"),
        (
            "file",
            "installation",
            "a",
            "set it by GATEWAY_INSTALLATION or --set; it is not read from",
        ),
        (
            "file",
            "chat.confirm",
            "never",
            "set it by GATEWAY_CHAT_CONFIRM or --set; it is not read from",
        ),
        ("file", "programs.destructive", True, "set it by GATEWAY_PROGRAMS_DESTRUCTIVE or"),
        ("file", "upstream.on_change", "warn", "set it by GATEWAY_UPSTREAM_ON_CHANGE or --set"),
        ("file", "host_key", "k" * 32, "options: host_key must refer to a secret"),
        ("file", "public_url", "https://a", "set it by GATEWAY_PUBLIC_URL or --set"),
        ("--set", "public_url", "http://a", "public_url must be an https address"),
        ("file", "catalog_store_path", "a", "set it by GATEWAY_CATALOG_STORE_PATH or --set"),
        ("file", "provision.enough", 0.1, "set it by GATEWAY_PROVISION_ENOUGH or --set; it is not"),
        ("file", "search", 1, "options: search: unknown option"),
    ],
)
def test_invalid_option_is_reported_with_its_key_and_a_similar_key(
    place: Place, way: str, key: str, value: object, message: str
) -> None:
    ran = _run(place, way, key, value)

    error = ran.json["error"]
    assert (USAGE, "ConfigError") == (ran.code, error["type"])
    assert message in error["message"]
    assert "SearchOptions" not in error["message"]


def test_command_line_overrides_environment_and_file(place: Place) -> None:
    command = ("search", "", "--strategy", "graph", "--json", "-c")
    env = {"GATEWAY_SEARCH_LIMIT": "1"}

    of_environment = place.run(*command, place.config(options={"search": {"limit": 2}}), env=env)
    of_command = place.run(*command, place.config(), "--set", "search.limit=2", env=env)
    refused = place.run(*command, place.config(options={"search": {"limit": 0}}), env=env)

    counts = [len(ran.json["result"]["matches"]) for ran in (of_environment, of_command)]
    assert [1, 2] == counts
    assert USAGE == refused.code


def test_misspelt_environment_variable_of_an_option_is_reported(place: Place) -> None:
    command = ("search", "", "--strategy", "graph", "-c", place.config())
    ran = place.run(*command, env={"GATEWAY_SEARCH_LIMTI": "1"})

    assert OK == ran.code
    assert "GATEWAY_SEARCH_LIMTI is not an option: did you mean GATEWAY_SEARCH_LIMIT?" in ran.err


@pytest.mark.parametrize("way", [{"usage": True}, {"usage": {"record": True}}])
def test_calls_are_recorded_only_if_the_option_usage_is_on(
    place: Place, way: Mapping[str, object]
) -> None:
    arguments = ("call", "time/get_current_time", '{"timezone": "Europe/Kyiv"}', "-c")
    place.run(*arguments, place.config())
    before = place.run("usage", "show", "--json").json
    place.run(*arguments, place.config(options=way))
    after = place.run("usage", "show", "--json").json

    assert ([], ["time/get_current_time"]) == (before["tools"], [t["tool"] for t in after["tools"]])


def test_set_accepts_provision_options_and_server_inputs(place: Place) -> None:
    ran = place.run(
        *("provision", "tell the time", "-c", place.config(), "--json"),
        *("--set", "provision.candidates=0", "--set", "KEY=env:KEY"),
    )

    assert USAGE == ran.code
    assert "provision.candidates: expected int from 1" in ran.json["error"]["message"]


def test_option_verbose_prints_the_log(place: Place) -> None:
    config = place.config({"srv": place.hostile("garbage")})
    quiet = place.run("servers", "test", "-c", config)
    loud = place.run("servers", "test", "-c", config, "-v")

    line = "gateway.upstream: srv: a warning on the side"
    assert (False, True) == (line in quiet.err, line in loud.err)
