"""What a client must be able to do for what a server asks: pure."""

from __future__ import annotations

import pytest
from mcp import MCPError, types
from mcp.types import JSONRPCRequest

from gateway.errors import CallerError
from gateway.mcp.server_requests import (
    capability_error,
    check_capabilities,
    declare_capabilities,
    forwarded_capabilities,
    missing_capabilities,
    on_behalf_of,
)
from gateway.types import JsonObject
from tests.mcp.callers import Person
from tests.serve.asking import NAME, sample

URL = types.ElicitRequest(
    params=types.ElicitRequestURLParams(message="pay", url="https://a.example", elicitation_id="1")
)
ROOTS = types.ListRootsRequest()
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"


def with_tools() -> types.CreateMessageRequest:
    """A model that may call tools."""
    asked = sample("hello")
    asked.params.tools = []
    return asked


@pytest.mark.parametrize(
    ("can", "request_", "missing"),
    [
        ({"elicitation": {}}, NAME, {}),
        ({"elicitation": {"form": {}}}, NAME, {}),
        ({"elicitation": {"url": {}}}, NAME, {"elicitation": {"form": {}}}),
        ({"elicitation": {}}, URL, {"elicitation": {"url": {}}}),
        ({"elicitation": {"form": {}, "url": {}}}, URL, {}),
        ({}, NAME, {"elicitation": {}}),
        ({"sampling": {}}, sample("a"), {}),
        ({"sampling": {}}, with_tools(), {"sampling": {"tools": {}}}),
        ({"sampling": {"tools": {}}}, with_tools(), {}),
        ({"elicitation": {}}, sample("a"), {"sampling": {}}),
        ({"roots": {"listChanged": True}}, ROOTS, {}),
        ({"sampling": {}}, ROOTS, {"roots": {}}),
    ],
)
def test_what_a_client_lacks(
    can: JsonObject, request_: types.InputRequest, missing: JsonObject
) -> None:
    """An empty elicitation is one for forms: there was nothing else once."""
    assert missing == missing_capabilities(can, request_)


def test_nobody_is_asked_for_what_he_cannot_do() -> None:
    """Nor is anybody where no client that can be asked waits."""
    check_capabilities("srv", Person({"elicitation": {}}), NAME)
    with pytest.raises(CallerError, match="client cannot do it") as raised:
        check_capabilities("srv", Person({}), NAME)
    with pytest.raises(CallerError, match="no client that can be asked waits here"):
        check_capabilities("srv", None, NAME)
    assert {"elicitation": {}} == raised.value.needed


def modern(capabilities: object) -> JSONRPCRequest:
    """A request as a client of 2026-07-28 writes it."""
    meta = {CAPABILITIES: capabilities, "other": 1}
    return JSONRPCRequest(
        jsonrpc="2.0", id=1, method="tools/call", params={"name": "a", "_meta": meta}
    )


def declared(message: JSONRPCRequest) -> object:
    """What *message* says that its client can do."""
    assert message.params is not None
    return message.params["_meta"][CAPABILITIES]


def test_a_server_is_told_what_this_caller_can_do() -> None:
    """And no more: nothing that we would not pass on, nothing of anybody else."""
    can: JsonObject = {"sampling": {"tools": {}}, "experimental": {"x": {}}, "roots": None}
    with on_behalf_of(Person(can)):
        told = declare_capabilities(modern({"elicitation": {}}), can_be_asked=True)

    assert {"sampling": {"tools": {}}} == declared(told) == forwarded_capabilities(can)
    assert {} == declared(declare_capabilities(modern({"elicitation": {}}), can_be_asked=True))


def test_a_session_declares_only_where_callers_can_be_asked() -> None:
    """For the older servers, once for all calls."""
    params = {"capabilities": {"elicitation": {}}, "protocolVersion": "2025-11-25"}
    first = JSONRPCRequest(jsonrpc="2.0", id=1, method="initialize", params=params)
    silent = declare_capabilities(first, can_be_asked=False)

    assert first == declare_capabilities(first, can_be_asked=True)
    assert {"capabilities": {}, "protocolVersion": "2025-11-25"} == silent.params


@pytest.mark.parametrize("params", [None, {"name": "a"}, {"_meta": {"progressToken": 1}}])
def test_what_declares_nothing_stays_as_it_is(params: dict[str, object] | None) -> None:
    """Requests of the older versions."""
    message = JSONRPCRequest(jsonrpc="2.0", id=1, method="tools/call", params=params)

    assert message is declare_capabilities(message, can_be_asked=True)


@pytest.mark.parametrize(
    ("data", "needed", "said"),
    [
        ({"requiredCapabilities": {"sampling": {}}}, {"sampling": {}}, "sampling"),
        ({"requiredCapabilities": "x"}, {}, "more"),
        (None, {}, "more"),
    ],
)
def test_a_servers_refusal_says_what_was_missing(
    data: object, needed: JsonObject, said: str
) -> None:
    """As far as the server says it."""
    error = capability_error("srv", MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, "no", data))

    assert needed == error.needed
    assert said in str(error)
