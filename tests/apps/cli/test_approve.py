"""`gateway approve`."""

from __future__ import annotations

import pytest

from gateway.storage import SqlCatalog
from tests.apps.cli.running import Place


def test_approve_shows_and_approves_a_changed_command_line_and_tool(place: Place) -> None:
    place.run("tools", "-c", place.config({"srv": place.hostile("plain")}))
    config = place.config({"srv": place.hostile("dressed_up")})
    changed = place.run("tools", "-c", config)
    listed = place.run("approve", "-c", config)
    one = place.run("approve", "srv/good", "-c", config, "--json")
    others = place.run("approve", "--all", "-c", config, "--json")
    nothing = place.run("approve", "srv", "-c", config)
    again = place.run("tools", "-c", config)

    assert "gateway approve srv/good" in changed.err
    assert "gateway approve srv [server_changed]" in changed.err
    assert 0 == listed.code
    assert "changed  srv, srv/good" in listed.out
    assert '-   "description": "Works."\n+   "description": "Works better."\n' in listed.out
    assert (["srv/good"], ["srv"]) == (one.json["approved"], one.json["changed"])
    assert {"before": {"description": "Works."}, "after": {"description": "Works better."}} == (
        one.json["differences"]["srv/good"]
    )
    assert (["srv"], []) == (others.json["approved"], others.json["changed"])
    assert (1, "nothing changed since the last approval\n") == (nothing.code, nothing.out)
    assert "approve" not in again.err


@pytest.mark.parametrize(
    "command",
    [
        ["tools"],
        ["call", "srv/good"],
        ["search", "works", "--strategy", "graph"],
        ["servers", "test"],
        ["discover", "--strategy", "graph"],
        ["provision", "works", "--no-known", "--strategy", "graph"],
        ["doctor", "--connect"],
        ["index", "build"],
    ],
    ids=" ".join,
)
def test_commands_do_not_start_changed_servers_if_on_change_is_block(
    place: Place, command: list[str]
) -> None:
    """`GATEWAY_ON_CHANGE` is set in the environment, because people who can write the configuration
    must not weaken it.
    """
    env = {"GATEWAY_ON_CHANGE": "block"}
    config = place.config({"srv": place.hostile(env={"PYTHONPATH": "/one"})})
    place.run("tools", "-c", config, env=env)
    record = place.folder / "record"
    started = record.read_text()
    config = place.config({"srv": place.hostile(env={"PYTHONPATH": "/two"})})

    place.run(*command, "-c", config, env=env)
    stored = record.read_text()
    place.run("approve", "srv", "-c", config)
    place.run("tools", "-c", config, env=env)

    assert started == stored
    assert started != record.read_text()


def test_login_refuses_a_changed_address_if_on_change_is_block(place: Place) -> None:
    env = {"GATEWAY_ON_CHANGE": "block"}
    config = place.config({"srv": {"url": "http://127.0.0.1:1/one"}})
    place.run("tools", "-c", config, env=env)
    config = place.config({"srv": {"url": "http://127.0.0.1:1/two"}})

    refused = place.run("login", "srv", "-c", config, env=env)

    assert "changed since it was approved" in refused.err
    assert "srv" in place.run("approve", "-c", config).out


def test_unknown_policy_for_changes_is_refused(place: Place) -> None:
    """A misspelt `GATEWAY_ON_CHANGE` must not weaken the default."""
    refused = place.run("tools", "-c", place.config(), env={"GATEWAY_ON_CHANGE": "blok"})

    assert 2 == refused.code
    assert "GATEWAY_ON_CHANGE: expected 'warn' or 'block', got 'blok'" in refused.err


def test_approve_gives_the_name_of_a_removed_server_to_another_tool(place: Place) -> None:
    place.run("tools", "-c", place.config({"srv": place.hostile()}))
    config = place.config({"other": place.hostile(), "third": place.hostile()})
    before = place.run("tools", "-c", config, "--json")
    listed = place.run("approve", "-c", config, "--json")
    checked = place.run("doctor", "-c", config)
    approved = place.run("approve", "name:good", "-c", config, "--json")
    after = place.run("tools", "-c", config, "--json")

    assert ["other_good", "third_good"] == [tool["exposed_name"] for tool in before.json["tools"]]
    difference = {"before": {"tool": "srv/good"}, "after": {"tool": "other/good"}}
    assert {"name:good": difference} == listed.json["differences"]
    assert "gateway approve name:good" in checked.out
    assert ["name:good"] == approved.json["approved"]
    assert ["good", "third_good"] == [tool["exposed_name"] for tool in after.json["tools"]]


def test_approve_and_doctor_report_tools_with_nearly_equal_names(place: Place) -> None:
    records = SqlCatalog.in_files(place.cache / "catalog.sqlite3")
    config = place.config({"a": place.hostile(), "b": place.hostile()})
    for server, tool in (("a", "get_user_role"), ("b", "get_user_roles")):
        records.record_seen(f"{place.folder / 'servers.json'}#{server}", {tool: "1"})
    records.close()

    listed = place.run("approve", "-c", config, "--json")

    assert [["a/get_user_role", "b/get_user_roles"]] == listed.json["similar"]
    output = place.run("approve", "-c", config).err
    assert "nearly equal names: a/get_user_role, b/get_user_roles" in output
    assert "nearly equal names" in place.run("doctor", "-c", config).out


def test_corrupt_store_of_approvals_is_reported(place: Place) -> None:
    """`gateway doctor` reports it until the corrupt file is deleted."""
    config = place.config({"srv": place.hostile()})
    place.run("tools", "-c", config)
    (place.cache / "catalog.sqlite3").write_text("junk" * 4096)
    met = place.run("tools", "-c", config)
    checked = place.run("doctor", "-c", config)

    assert "catalog.sqlite3.corrupt-1" in met.err
    assert "[store_rebuilt]" in met.err
    assert "catalog.sqlite3.corrupt-1 is a corrupt file" in checked.out


def test_approve_accepts_a_server_name_and_refuses_unknown_names(place: Place) -> None:
    config = place.config({"srv": place.hostile("plain")})
    records = SqlCatalog.in_files(place.cache / "catalog.sqlite3")
    owner = f"{place.folder / 'servers.json'}#srv"
    records.record_seen(owner, {"": "1", "a": "1", "b": "1"})
    records.record_seen(owner, {"": "2", "a": "2", "b": "1"})
    records.close()

    both = place.run("approve", "srv", "-c", config, "--json")
    unknown = place.run("approve", "other/x", "-c", config)

    assert ["srv", "srv/a"] == both.json["approved"]
    assert 0 != unknown.code
    assert "no server 'other' is configured; configured servers: srv" in unknown.err


def test_call_of_an_approved_alias_starts_only_its_original_server(place: Place) -> None:
    virtual = {"v": {"tools": {"best": "srv/good"}}}
    place.run("tools", "-c", place.config({"srv": place.hostile("plain")}, virtualServers=virtual))
    servers = {"srv": place.hostile("dressed_up"), "other": {"command": "no-such-program"}}
    config = place.config(servers, virtualServers=virtual)
    place.run("tools", "-c", config)
    approved = place.run("approve", "v/best", "-c", config, "--json")
    called = place.run("call", "v/best", "-c", config)

    assert (["v/best"], ["srv", "srv/good"]) == tuple(
        approved.json[key] for key in ("approved", "changed")
    )
    assert "Works better." == approved.json["differences"]["v/best"]["after"]["description"]
    assert 0 == called.code
    assert "no-such-program" not in called.err
