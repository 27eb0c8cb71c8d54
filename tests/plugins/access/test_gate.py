"""Checks before a call: approvals, limits and the audit log, for every way to call a tool."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest
from mcp import Client, MCPError, types

from gateway import Approval
from gateway.discovery import MetaNames, ToolList
from gateway.discovery.call_handler import ToolAnswer, ToolCall, handle_call
from gateway.errors import (
    ConfigError,
    Failed,
    LimitExceededError,
    NotApprovedError,
    StoreError,
    UnknownToolError,
)
from gateway.gateway import Gateway
from gateway.options import AccessPolicy, AuditOptions, Options
from gateway.plugins.access import AuditRow, audit_log_of, auditor_of, read_all
from gateway.plugins.usage import call_log_of
from gateway.serve.api.problems import refusal
from gateway.serve.mcp_server import mcp_server
from gateway.storage import SqliteStore
from gateway.types import TOKEN, Caller, Hints, InvokeResult, JsonObject
from tests.conftest import PATIENT, OpenGateway
from tests.core.call.test_resources import Shop, thing
from tests.fakes import ListSource, tool

ADA = Caller(user="ada", tenant="acme", attributes={TOKEN: "dashboard"})
BOB = Caller(user="bob")
LETTER = {"id": 7, "password": "hunter2"}


class Desk(ListSource):
    """Source that records calls."""

    def __init__(self) -> None:
        hints = Hints(read_only=True)
        super().__init__(
            "desk", [tool("read_letter", hints=hints), tool("burn_letter")], trusted=True
        )
        self.calls: list[tuple[str, JsonObject]] = []

    async def call(self, tool: str, arguments: JsonObject, *, tool_id: str) -> InvokeResult:
        self.calls.append((tool, arguments))
        return await super().call(tool, arguments, tool_id=tool_id)


@pytest.fixture
def desk() -> Desk:
    return Desk()


Opened = Callable[..., Gateway]


@pytest.fixture
def open_with_policies(open_gateway: OpenGateway, desk: Desk, tmp_path: Path) -> Opened:
    def build(*policies: AccessPolicy, **audit: Any) -> Gateway:
        own_options = replace(
            PATIENT,
            policies=policies,
            audit=AuditOptions(record="on", **audit),
            catalog_store_path=tmp_path / "catalog.sqlite3",
        )
        gateway = open_gateway(options=own_options)
        gateway.add_source(desk)
        return gateway

    return build


def rows(gateway: Gateway) -> list[AuditRow]:
    return [row for _, row in read_all(audit_log_of(gateway.store))]


def decisions(gateway: Gateway) -> list[str]:
    return [row.decision for row in rows(gateway)]


async def test_gate_writes_an_audit_row_before_a_call_and_one_at_its_end(
    open_with_policies: Opened, desk: Desk
) -> None:
    """The rows contain only a digest of the arguments."""
    gateway = open_with_policies(AccessPolicy(action="allow", tools=("desk/*",), name="letters"))
    for arguments in (LETTER, {"password": "hunter2", "id": 7}, {"id": 8}):
        await gateway.invoke("desk/read_letter", arguments, caller=ADA)

    first, ended, again, _, other, _ = rows(gateway)
    assert ("allowed", "ok") == (first.decision, ended.decision)
    assert first == replace(ended, at=first.at, decision="allowed")
    assert ("call", "ada", "acme", "dashboard", "desk/read_letter", "desk", "letters") == (
        *(first.action, first.user, first.tenant, first.token),
        *(first.entity, first.server, first.rule),
    )
    assert first.arguments == again.arguments != other.arguments
    assert first.call != again.call
    assert "hunter2" not in repr(rows(gateway))
    assert 3 == len(desk.calls)


async def test_call_of_a_denied_tool_is_answered_as_unknown_and_audited(
    open_with_policies: Opened, desk: Desk
) -> None:
    """A call of a tool that does not exist is not audited, because its name may be any text."""
    gateway = open_with_policies(
        AccessPolicy(action="deny", tools=("*/burn_*",), users=("bob",), name="no fire")
    )
    for name in ("desk/burn_letter", "nothing_of_the_kind"):
        with pytest.raises(UnknownToolError) as caught:
            await gateway.invoke(name, caller=BOB)
        assert "burn" not in str(caught.value.near)
    await gateway.invoke("desk/burn_letter", caller=ADA)

    assert [("denied", "bob", "no fire"), ("allowed", "ada", ""), ("ok", "ada", "")] == [
        (row.decision, row.user, row.rule) for row in rows(gateway)
    ]
    assert 1 == len(desk.calls)


async def test_audit_log_counts_repeated_refusals_in_few_rows(
    open_with_policies: Opened, desk: Desk
) -> None:
    gateway = open_with_policies(
        AccessPolicy(action="deny", tools=("*/burn_*",)),
        AccessPolicy(action="limit", tools=("*/read_*",), name="slow", calls=1, per="day"),
    )
    await gateway.invoke("desk/read_letter", caller=ADA)
    for number in range(20):
        with pytest.raises(UnknownToolError):
            await gateway.invoke("desk/burn_letter", {"at": number}, caller=ADA)
        with pytest.raises(LimitExceededError):
            await gateway.invoke("desk/read_letter", {"at": number}, caller=ADA)
    gateway.hooks.close()

    for decision in ("denied", "limited"):
        counts = [row.detail.split(" ")[0] for row in rows(gateway) if row.decision == decision]
        # A new minute may start during the test.
        assert 2 <= len(counts) <= 4
        assert 20 == sum(int(count or 1) for count in counts)


async def test_ask_policy_refuses_a_call_without_approval(
    open_with_policies: Opened, desk: Desk
) -> None:
    """Approval options that do not mention the tool have no effect."""
    gateway = open_with_policies(AccessPolicy(action="ask", tools=("desk/read_*",), name="private"))
    with pytest.raises(NotApprovedError, match="by the policy 'private'"):
        await gateway.invoke("read_letter")
    assert [] == desk.calls

    await gateway.invoke("read_letter", approved=True)
    assert ["refused", "approved", "allowed", "ok"] == decisions(gateway)


@pytest.mark.parametrize(
    ("approve", "expected"),
    [
        (lambda _: True, ["asked", "approved", "allowed", "ok"]),
        (lambda _: False, ["asked", "refused"]),
        (None, ["refused"]),
    ],
)
async def test_ask_policy_asks_the_host_about_a_call_by_the_model(
    open_with_policies: Opened,
    desk: Desk,
    approve: Callable[[Approval], bool] | None,
    expected: list[str],
) -> None:
    """The host is asked even about a read-only tool."""
    gateway = open_with_policies(AccessPolicy(action="ask", name="private"))

    answer = await ask(gateway, "read_letter", approve)

    assert expected == decisions(gateway)
    assert ("ok" in expected) is (not answer.failed) is (len(desk.calls) == 1)


async def test_each_refusal_by_the_host_has_its_own_row(open_with_policies: Opened) -> None:
    """Each refusal by the host is a new decision, so it is not counted as a repetition."""
    gateway = open_with_policies(AccessPolicy(action="ask", name="private"))
    for _ in range(3):
        await ask(gateway, "read_letter", lambda _: False)

    assert ["asked", "refused"] * 3 == decisions(gateway)


async def ask(gateway: Gateway, name: str, approve: Any = None) -> ToolAnswer:
    tools = ToolList(names=MetaNames(search="search_tools", call="call_tool"), caller=ADA)
    call = ToolCall(id="1", name=name, arguments="{}")
    return await handle_call(gateway, tools, call, approve=approve)


@pytest.mark.parametrize("expose", ["meta", "all"])
async def test_ask_policy_asks_the_mcp_client_by_elicitation(
    open_with_policies: Opened, desk: Desk, expose: Any
) -> None:
    gateway = open_with_policies(AccessPolicy(action="ask", name="private"))
    actions: Iterator[Literal["decline", "accept"]] = iter(("decline", "accept"))
    messages: list[str] = []

    async def elicit(context: Any, params: Any) -> types.ElicitResult:
        messages.append(params.message)
        return types.ElicitResult(action=next(actions), content={})

    server = mcp_server(gateway, expose=expose, caller=ADA)
    async with Client(server, elicitation_callback=elicit) as client:
        answers = [await client.call_tool("read_letter", {}) for _ in range(2)]

    assert [True, False] == [answer.is_error for answer in answers]
    assert 2 == len(messages)
    assert 1 == len(desk.calls)
    assert ["asked", "refused", "asked", "approved", "allowed", "ok"] == decisions(gateway)


@pytest.mark.parametrize("expose", ["meta", "all"])
async def test_audit_has_no_asked_row_if_the_mcp_client_asks_its_user_itself(
    open_with_policies: Opened, expose: Any
) -> None:
    gateway = open_with_policies()
    gateway.add_source(ListSource("post", [tool("send_letter")]))
    async with Client(mcp_server(gateway, expose=expose, caller=ADA)) as client:
        answer = await client.call_tool("send_letter", {})

    assert not answer.is_error
    assert ["allowed", "ok"] == decisions(gateway)


async def test_limit_error_contains_the_retry_time_for_each_kind_of_client(
    open_with_policies: Opened, desk: Desk
) -> None:
    """The clients are a program, a model, an MCP client and an HTTP client."""
    gateway = open_with_policies(
        AccessPolicy(action="limit", calls=1, per="hour", name="one an hour")
    )
    await gateway.invoke("read_letter", caller=ADA)

    with pytest.raises(LimitExceededError, match=r"'one an hour'.*try again in 36") as caught:
        await gateway.invoke("read_letter", caller=ADA)
    answer = await ask(gateway, "read_letter")
    async with Client(mcp_server(gateway, caller=ADA)) as client:
        over_mcp = await client.call_tool("read_letter", {})
    await gateway.invoke("read_letter", caller=BOB)
    problem = refusal(Failed(caught.value))

    assert 3540 < caught.value.retry_after_s <= 3660
    assert "try again in 36" in json.loads(answer.text)["error"]
    assert over_mcp.is_error
    assert 3540 < dict(over_mcp.meta or {})["retryAfterSeconds"] <= 3660
    assert (429, "36") == (problem.status, dict(problem.headers or {})["Retry-After"][:2])
    assert 2 == len(desk.calls)
    assert {"one an hour"} == {r.rule for r in rows(gateway) if r.decision == "limited"}


async def test_policies_apply_to_resource_reads_and_prompts_like_to_calls(
    open_with_policies: Opened,
) -> None:
    """Resources that the server does not list are checked too. MCP error data contains the retry
    time.
    """
    shop = Shop("shop", thing("resource", "note://a"), thing("prompt", "greet"))
    text = json.dumps({"email": "ada@example.org"})
    shop.answer = {
        "contents": [{"uri": "note://b", "text": text}],
        "messages": [{"role": "user", "content": {"type": "text", "text": text}}],
    }
    gateway = open_with_policies(
        AccessPolicy(action="deny", tools=("resource:shop/note://secret*",)),
        AccessPolicy(action="redact", paths=("email",), servers=("shop",)),
        AccessPolicy(action="limit", calls=2, per="hour", kinds=("resource",), name="two"),
    )
    gateway.add_source(shop)
    read = await gateway.read("gateway:/shop/note://b", caller=ADA)
    filled = await gateway.prompt("greet", {"to": "x"}, caller=ADA)
    async with Client(mcp_server(gateway, caller=ADA)) as client:
        await client.read_resource("note://a")
        with pytest.raises(MCPError) as limited:
            await client.read_resource("note://a")
        with pytest.raises(MCPError) as denied:
            await client.read_resource("gateway:/shop/note://secret")
        with pytest.raises(MCPError) as missing:
            await client.read_resource("gateway:/shot/note://secret")

    assert "example.org" not in repr(read) + repr(filled)
    assert 3540 < limited.value.error.data["retryAfterSeconds"] <= 3660
    assert str(denied.value) == str(missing.value).replace("shot", "shop")
    assert [
        ("read", "resource:shop/note://b", "allowed"),
        ("read", "resource:shop/note://b", "ok"),
        ("prompt", "prompt:shop/greet", "allowed"),
        ("prompt", "prompt:shop/greet", "ok"),
        ("read", "resource:shop/note://a", "allowed"),
        ("read", "resource:shop/note://a", "ok"),
        ("read", "resource:shop/note://a", "limited"),
    ] == [(row.action, row.entity, row.decision) for row in rows(gateway)]


async def test_unwritable_audit_log_refuses_calls_unless_on_failure_is_continue(
    open_with_policies: Opened, desk: Desk, tmp_path: Path
) -> None:
    gateway = open_with_policies()
    (tmp_path / "audit.sqlite3").mkdir()
    with pytest.raises(StoreError, match="the audit log cannot be written"):
        await gateway.invoke("read_letter")
    answer = await ask(gateway, "burn_letter", lambda _: True)
    with pytest.raises(StoreError):
        await gateway.catalog.remove("agent:a/b")
    assert answer.failed
    assert [] == desk.calls

    going_on = open_with_policies(on_failure="continue")
    result = await going_on.invoke("read_letter")
    assert {"audit_unavailable"} == {note.code for note in result.diagnostics}
    assert 1 == len(desk.calls)


async def test_catalog_changes_by_the_host_are_audited_before_and_after(
    open_with_policies: Opened,
) -> None:
    gateway = open_with_policies()
    (letter,) = [entity for entity in await gateway.list_tools() if entity.name == "read_letter"]
    await gateway.catalog.change([letter.id], {"status": "beta"}, add_tags=["post"])
    await gateway.disable("desk/read_letter")
    with pytest.raises(Exception, match="status"):
        await gateway.catalog.change([letter.id], {"status": "odd"})
    await gateway.reload()

    changes = [(row.action, row.entity, row.decision) for row in rows(gateway)]
    assert [
        ("catalog.change", letter.id, "allowed"),
        ("catalog.change", letter.id, "ok"),
        ("catalog.change", letter.id, "allowed"),
        ("catalog.change", letter.id, "ok"),
        ("catalog.change", letter.id, "allowed"),
        ("catalog.change", letter.id, "failed"),
        ("config.reload", "", "allowed"),
        ("config.reload", "", "ok"),
    ] == changes
    assert {"status": "beta", "add_tags": ["post"]} == json.loads(rows(gateway)[0].detail)


def test_audit_log_is_off_by_default_and_needs_a_suitable_store(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="needs tables, or an audit log"):
        Gateway(store=_Plain(tmp_path), options=Options(audit=AuditOptions(record="on")))
    with_store = Gateway(store=_Plain(tmp_path))
    assert auditor_of(with_store.options, with_store.store).log is None
    with_store.close()


class _Plain:
    """Store of a host without an audit log."""

    def __init__(self, folder: Path) -> None:
        whole = SqliteStore(
            vectors=folder / "v.sqlite3", catalog=folder / "c.sqlite3", usage=folder / "u.sqlite3"
        )
        self.vectors, self.entries = whole.vectors, whole.entries
        self.listings, self.close = whole.listings, whole.close
        self.call_log = call_log_of(whole)
