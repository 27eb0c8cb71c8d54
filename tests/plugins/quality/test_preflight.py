from __future__ import annotations

from dataclasses import replace

import pytest

from gateway.gateway import Gateway
from gateway.plugins.quality import (
    ServerState,
    Verdict,
    check_tools,
    preflight,
    schema_digest,
    worst,
)
from gateway.types import Caller, Diagnostic
from tests import fakes
from tests.plugins.quality.catalogs import entity

SCHEMA = {"type": "object", "properties": {"to": {"type": "string"}}}
NOTE = Diagnostic(stage="catalog", code="tool_changed", detail="other")
SEND = entity("mail/send", "Send a mail.", SCHEMA)
OPEN = replace(entity("mail/open", "Open a mail."), scopes=frozenset({"mail"}))
EDIT = entity("mail/edit", "Edit a mail.")
EDITED = replace(EDIT, definition=replace(EDIT.definition, diagnostics=(NOTE,)))
SNAPSHOT = fakes.compile_snapshot([SEND, OPEN, EDITED])
UP = ServerState(name="mail")


@pytest.mark.parametrize(
    ("tool", "server", "verdict", "reasons"),
    [
        ("mail/send", UP, "ready", []),
        ("mail/gone", UP, "needs_person", ["not_listed"]),
        ("mail/open", UP, "needs_person", ["filtered"]),
        ("mail/edit", UP, "needs_person", ["changed"]),
        ("mail/send", replace(UP, failure="hangs"), "retry_later", ["server_down"]),
        ("mail/gone", replace(UP, failure="hangs"), "retry_later", ["server_down"]),
        ("mail/edit", replace(UP, failure="hangs"), "needs_person", ["server_down", "changed"]),
        ("mail/send", replace(UP, changed=True), "needs_person", ["changed"]),
        ("mail/send", replace(UP, signed_out=True), "needs_person", ["signed_out"]),
        ("mail/gone", replace(UP, listed=False), "unknown", ["not_listed"]),
        ("mail/gone", replace(UP, unusable="no such server"), "needs_person", ["not_listed"]),
    ],
)
def test_each_reason_against_a_call_has_its_verdict(
    tool: str, server: ServerState, verdict: Verdict, reasons: list[str]
) -> None:
    """Only problems that pass with time are *retry_later*."""
    (check,) = check_tools({tool: ""}, SNAPSHOT, {tool: server})

    assert (tool, verdict, reasons) == (check.tool, check.verdict, list(check.reasons))
    assert bool(reasons) == bool(check.detail)


def test_tool_that_requires_a_scope_is_ready_for_a_caller_with_it() -> None:
    caller = Caller(scopes=frozenset({"mail"}))
    (check,) = check_tools({"mail/open": ""}, SNAPSHOT, {"mail/open": UP}, caller=caller)

    assert "ready" == check.verdict


def test_schema_digest_depends_only_on_schemas() -> None:
    reworded = entity("mail/send", "Sends one mail.", SCHEMA)
    other = entity("mail/send", "Send a mail.", SCHEMA | {"required": ["to"]})
    digests, states = {"mail/send": schema_digest(SEND)}, {"mail/send": UP}
    (same,) = check_tools(digests, fakes.compile_snapshot([reworded]), states)
    (differs,) = check_tools(digests, fakes.compile_snapshot([other]), states)

    assert ("ready", schema_digest(SEND)) == (same.verdict, same.digest)
    assert ("schema_differs",) == differs.reasons


def test_worst_verdict_is_unknown_then_needs_person_then_retry_later() -> None:
    states = {
        "mail/send": UP,
        "mail/a": replace(UP, listed=False),
        "mail/b": UP,
        "mail/c": replace(UP, failure="hangs"),
    }
    checks = check_tools(dict.fromkeys(states, ""), SNAPSHOT, states)
    ready, unknown, person, later = checks

    assert ["unknown", "needs_person", "retry_later"] == [
        worst(check.verdict for check in group)
        for group in ((ready, later, person, unknown), (ready, later, person), (ready, later))
    ]
    assert "ready" == ready.verdict == worst(())


async def test_preflight_uses_the_state_of_the_gateway(gateway: Gateway) -> None:
    tool = (await gateway.list_tools())[0].id
    ready, gone = await preflight(gateway, {tool: "", "shelf/gone": ""})

    assert ("ready", "needs_person") == (ready.verdict, gone.verdict)
