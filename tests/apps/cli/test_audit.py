"""`gateway audit`, records of commands, and approvals of calls."""

from __future__ import annotations

import json

from gateway.cli import NOTHING, OK, USAGE
from tests.apps.cli.running import Place

ADD = ("catalog", "add", "dataset", "iris", "-d", "Measured flowers.")
OFF = {"GATEWAY_AUDIT_RECORD": "off"}


def test_commands_that_change_something_write_to_the_audit_log(place: Place) -> None:
    place.run(*ADD)
    place.run("catalog", "change", "dataset:catalog/iris", "--disable")
    place.run("usage", "forget", "--all")
    place.run("catalog", "remove", "dataset:catalog/iris", env=OFF)
    listed = place.run("audit", "list", "--json")
    own = place.run("audit", "list", "--entity", "dataset:catalog/iris", "-n", "1")
    exported = place.run("audit", "export", "--since", "1h")
    later = place.run("audit", "list", "--since", "2999-01-01")
    wrong = place.run("audit", "list", "--since", "yesterday")
    off = place.run("audit", "list", env=OFF)

    rows = listed.json
    assert ["catalog.put", "catalog.change", "usage.forget"] == [row["action"] for row in rows[::2]]
    assert ["allowed", "ok"] * 3 == [row["decision"] for row in rows]
    assert {"command line"} == {row["token"] for row in rows}
    assert {"enabled": False} == json.loads(rows[2]["detail"])
    assert 1 == own.out.count("catalog.change")
    assert rows == [
        {name: value for name, value in json.loads(line).items() if name != "id"}
        for line in exported.out.splitlines()
    ]
    assert (NOTHING, USAGE, USAGE) == (later.code, wrong.code, off.code)


def test_call_with_approve_makes_a_call_that_a_policy_asks_about(place: Place) -> None:
    config = place.config(policies=[{"action": "ask", "name": "clock"}])
    call = ("call", "get_current_time", '{"timezone": "Asia/Tokyo"}', "-c", config)

    refused, approved = place.run(*call), place.run(*call, "--approve")

    assert USAGE == refused.code
    assert "needs an approval by the policy 'clock'" in refused.err
    assert OK == approved.code
