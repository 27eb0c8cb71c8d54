"""Errors and malformed answers of real servers, over stdio and HTTP."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.errors import UpstreamError
from gateway.runtime.background_loop import Bridge
from tests.core.mcp.conftest import lines
from tests.core.mcp.verbatim import PONG, Answers, answering, error


@pytest.mark.parametrize("code", [-32603, -32600, -32700, -32601, -32001, -32000, 7])
async def test_json_rpc_error_of_a_tool_reaches_the_caller_and_keeps_the_connection(
    bridge: Bridge, tmp_path: Path, record: Path, transport: str, code: int
) -> None:
    """The SDK uses the code -32000 and other codes also for its own failures."""
    fault = {"code": code, "message": "no sheet 'A\u200b'", "data": "it has: B, C"}
    answers: Answers = {"tools/call": [*[error(fault)] * 6, PONG]}
    async with answering(bridge, tmp_path, transport, answers) as source:
        failed = [await source.call("good", {}, tool_id="x") for _ in range(6)]
        well = await source.call("good", {}, tool_id="x")
        state = source.state, source.supervisor.breaker.has_tripped, source.supervisor.fault

    assert [("no sheet 'A'\nit has: B, C", True)] * 6 == [(e.text, e.is_error) for e in failed]
    assert ("pong", ("active", False, None)) == (well.text, state)
    if transport == "stdio":
        assert 1 == sum("initialize" in line for line in lines(record))


async def test_long_error_message_of_a_tool_is_cut(bridge: Bridge, tmp_path: Path) -> None:
    fault = {"code": -32603, "message": "x" * 100_000}
    answers: Answers = {"tools/call": [error(fault)]}
    async with answering(bridge, tmp_path, "stdio", answers) as source:
        answer = await source.call("good", {}, tool_id="x")

    assert 4000 == len(answer.text)


@pytest.mark.parametrize("code", [-32000, -32603])
async def test_call_succeeds_after_the_server_refused_to_list_tools(
    bridge: Bridge, tmp_path: Path, transport: str, code: int
) -> None:
    answers: Answers = {"tools/list": [error({"code": code, "message": "busy"})]}
    async with answering(bridge, tmp_path, transport, answers) as source:
        for _ in range(6):
            with pytest.raises(UpstreamError, match=f"refused tools/list .error {code}."):
                await source.list_tools()
        answer = await source.call("good", {}, tool_id="x")

    assert "pong" == answer.text


ODD_ERRORS = {
    "no message": ('{"jsonrpc": "2.0", "id": ID, "error": {"code": -32000}}', "error -32000"),
    "empty": ('{"jsonrpc": "2.0", "id": ID, "error": {}}', "error -32603"),
    "text": ('{"jsonrpc": "2.0", "id": ID, "error": "no such file"}', "no such file"),
    "named": (error({"code": "ENOENT", "message": "no such file"}), "no such file"),
    "null message": (error({"code": -5, "message": None}), "error -5"),
    "no version": ('{"id": ID, "error": {"code": -5, "message": "no such file"}}', "no such file"),
}


@pytest.mark.parametrize("form", ODD_ERRORS)
async def test_call_fails_at_once_after_a_malformed_error(
    bridge: Bridge, tmp_path: Path, transport: str, form: str
) -> None:
    """If the call waited for its time limit, it would raise another error."""
    line, text = ODD_ERRORS[form]
    async with answering(bridge, tmp_path, transport, {"tools/call": [line, PONG]}) as source:
        failed = await source.call("good", {}, tool_id="x")
        well = await source.call("good", {}, tool_id="x")

    assert (True, "pong") == (failed.is_error, well.text)
    assert text in failed.text


@pytest.mark.parametrize(
    "line",
    [
        '{"jsonrpc": "2.0", "id": ID}',
        '{"jsonrpc": "2.0", "id": ID, "result": null}',
        '{"jsonrpc": "2.0", "id": ID, "result": "pong"}',
        '{"jsonrpc": "2.0", "id": ID, "result": [1]}',
        '{"jsonrpc": "2.0", "id": ID.0, "result": []}',
        '{"id": ID, "result": {"content": []}}',
        '{"jsonrpc": "2.0", "id": ID, "result": {"content": [}}',
    ],
)
async def test_call_fails_at_once_after_a_malformed_result(
    bridge: Bridge, tmp_path: Path, transport: str, line: str
) -> None:
    async with answering(bridge, tmp_path, transport, {"tools/call": [line, PONG]}) as source:
        with pytest.raises(UpstreamError, match="in a form that MCP does not define"):
            await source.call("good", {}, tool_id="x")
        well = await source.call("good", {}, tool_id="x")

    assert "pong" == well.text


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
async def test_http_error_with_a_null_id_fails_the_request_that_it_answers(
    bridge: Bridge, tmp_path: Path, kind: str
) -> None:
    """A server that could not parse the request answers with a null id."""
    line = error({"code": -32700, "message": "cannot read that"}).replace("ID", "null")
    async with answering(bridge, tmp_path, kind, {"tools/call": [line]}) as source:
        answer = await source.call("good", {}, tool_id="x")

    assert (True, "cannot read that") == (answer.is_error, answer.text)


async def test_call_fails_at_once_if_the_http_body_is_not_an_answer(
    bridge: Bridge, tmp_path: Path
) -> None:
    line = '{"jsonrpc": "2.0", "method": "notifications/message"}'
    async with answering(bridge, tmp_path, "application/json", {"tools/call": [line]}) as source:
        with pytest.raises(UpstreamError, match="in a form that MCP does not define"):
            await source.call("good", {}, tool_id="x")


async def test_call_is_reported_as_lost_after_an_interrupted_event_stream(
    bridge: Bridge, tmp_path: Path
) -> None:
    """The SDK reports the interruption by the code -32000, as if the server had answered."""
    answers: Answers = {"tools/call": [None]}
    async with answering(bridge, tmp_path, "text/event-stream", answers) as source:
        with pytest.raises(UpstreamError, match="may or may not have been done") as raised:
            await source.call("good", {}, tool_id="x")

    assert ("lost", True) == (raised.value.kind, raised.value.sent)
