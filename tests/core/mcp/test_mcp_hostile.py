"""Hostile servers: malformed listings and answers, silence, and lost connections."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from pathlib import Path

import pytest

from gateway.errors import ClosedError, UpstreamError, UpstreamTimeoutError
from gateway.runtime.naming import MAX_NAME_CHARS
from gateway.types import Diagnostic
from tests.core.mcp.conftest import PATIENCE_S, Hostile, lines, lives, until, wait_for_lines


def names(diagnostics: tuple[Diagnostic, ...]) -> list[str]:
    return [note.detail.split(": ")[1] for note in diagnostics]


async def test_malformed_tool_is_left_out(hostile: Hostile) -> None:
    """With the SDK alone, one malformed tool makes the whole listing fail."""
    listing = await hostile("malformed").list_tools()

    repaired = {"no_schema", "bad_properties", "bad_required", "bad_dialect"}
    good, odd = (tool for tool in listing.tools if tool.name not in repaired)
    assert repaired < {tool.name for tool in listing.tools}
    assert ("good", "Works.") == (good.name, good.description)
    assert ("odd_rest", "", "") == (odd.name, odd.title, odd.description)
    *quarantined, simplified = listing.diagnostics
    assert {"tool_quarantined"} == {note.code for note in quarantined}
    assert [
        "tool 'string_schema'",
        "tool ''",
        "tool ''",
        "tool ''",
        f"tool '{'n' * MAX_NAME_CHARS}'",
        "tool 'hidden'",
        "tool 'good'",
    ] == names(tuple(quarantined))
    assert "twice" in quarantined[-1].detail
    assert all(f"'{name}' (" in simplified.detail for name in repaired)


@pytest.mark.parametrize(("mode", "name"), [("deep", "deep"), ("modern_marked", "marked")])
async def test_diagnostic_names_the_quarantined_tool(
    hostile: Hostile, mode: str, name: str
) -> None:
    """One tool is nested too deeply for fast parsers. The SDK drops the other one without an
    error.
    """
    listing = await hostile(mode).list_tools()

    assert ["good"] == [tool.name for tool in listing.tools]
    assert [f"tool '{name}'"] == names(listing.diagnostics)


async def test_tool_with_an_expensive_schema_is_left_out(hostile: Hostile) -> None:
    """In a schema of a few hundred bytes, 2^40 schemas apply to one value. Recursion alone is
    allowed.
    """
    listing = await hostile("costly").list_tools()

    assert ["tree"] == [tool.name for tool in listing.tools]
    reasons = [
        note.detail.split(": ")[-1]
        for note in listing.diagnostics
        if note.code == "tool_quarantined"
    ]
    applied = "one of its schemas applies more than 5000 schemas to one value"
    endless = "one of its schemas refers to itself endlessly"
    assert [*[applied] * 6, endless, endless, applied] == reasons


async def test_texts_of_a_definition_are_cleaned_and_cut_and_its_data_only_cleaned(
    hostile: Hostile,
) -> None:
    """Invisible characters can carry instructions to a model. Defaults must not be cut, to stay
    usable.
    """
    listing = await hostile("dressed", max_description_chars=64).list_tools()

    (tool,) = listing.tools
    assert "A title" == tool.title
    assert tool.description.startswith("Seen and xxx")
    assert 64 == len(tool.description)
    assert {
        "title": {"type": "string", "title": "Title", "description": "dd"},
        "default": {"default": {"description": "kept"}, "anyOf": [{"title": "a"}]},
        "any": True,
    } == tool.input_schema["properties"]
    assert {"type": "object", "title": "o"} == tool.output_schema
    assert (False, True, None) == (
        tool.hints.read_only,
        tool.hints.destructive,
        tool.hints.idempotent,
    )


@pytest.mark.parametrize(
    ("mode", "count", "reason"),
    [("endless", 5, "pages"), ("repeated", 2, "again"), ("many", 7, "tools")],
)
async def test_endless_or_too_long_listing_is_cut(
    hostile: Hostile, mode: str, count: int, reason: str
) -> None:
    """The SDK alone would read an endless listing forever."""
    listing = await hostile(mode, max_pages=5, max_tools=7).list_tools()

    assert count == len(listing.tools)
    cut = listing.diagnostics[-1]
    assert "listing_truncated" == cut.code
    assert reason in cut.detail


async def test_lines_that_are_not_messages_are_skipped_and_logged(
    hostile: Hostile, caplog: pytest.LogCaptureFixture
) -> None:
    """Real servers print to standard output. The SDK would log a traceback for each line."""
    caplog.set_level(logging.DEBUG, "gateway.upstream")

    listing = await hostile("garbage").list_tools()

    assert ["good"] == [tool.name for tool in listing.tools]
    assert all(entry.levelno == logging.DEBUG for entry in caplog.records)
    assert "bad: a line on standard output is not a message" in caplog.messages


@pytest.mark.parametrize("mode", ["silent", "silent_list"])
async def test_timeout_of_a_silent_server_names_the_option(hostile: Hostile, mode: str) -> None:
    source = hostile(mode, connect_timeout_s=0.5, list_timeout_s=0.5)

    with pytest.raises(UpstreamTimeoutError, match=r"(connect|list)_timeout_s"):
        await source.list_tools()


async def test_source_can_be_closed_while_it_connects(hostile: Hostile, record: Path) -> None:
    source = hostile("silent", connect_timeout_s=500)
    listing = asyncio.create_task(source.list_tools())
    waiting = asyncio.create_task(source.call("good", {}, tool_id="x"))
    await wait_for_lines(record, "heard")

    async with asyncio.timeout(PATIENCE_S):
        await asyncio.gather(source.close(), source.close())

    for task in (listing, waiting):
        with pytest.raises((UpstreamError, ClosedError)):
            await task


@pytest.mark.parametrize(
    ("mode", "remedy"),
    [
        ("exits_at_start", "ended before it answered: see what it wrote"),
        ("no_session", r"not a usable MCP server \(error -32603\)$"),
    ],
)
async def test_error_of_a_program_that_is_not_an_mcp_server_has_a_remedy(
    hostile: Hostile, mode: str, remedy: str
) -> None:
    """The SDK raises a nested group of errors, which contains texts of the server."""
    with pytest.raises(UpstreamError, match=remedy):
        await hostile(mode).list_tools()


@pytest.mark.parametrize(
    ("mode", "trusted", "calls"),
    [
        ("idempotent_exits", True, 2),
        ("idempotent_exits", False, 1),
        ("read_only_exits", True, 2),
        ("exits_mid_call", True, 1),
    ],
)
async def test_lost_call_is_repeated_only_if_a_trusted_server_allows_it(
    hostile: Hostile, record: Path, mode: str, *, trusted: bool, calls: int
) -> None:
    """The lost call may have run. Only a trusted server's hint shows that running it twice is
    harmless.
    """
    source = hostile(mode, trusted=trusted)
    await source.list_tools()

    with pytest.raises(UpstreamError, match="may or may not have been done") as raised:
        await source.call("good", {}, tool_id="bad/good")

    assert calls == lines(record).count("call good")
    assert ("lost", True) == (raised.value.kind, raised.value.sent)


async def test_call_after_the_end_of_the_child_reconnects_and_runs_once(
    hostile: Hostile, record: Path
) -> None:
    """The source notices the end of the child before it sends the call."""
    source = hostile("pid")
    await source.list_tools()
    child = int(lines(record)[0])

    os.kill(child, signal.SIGKILL)
    await until(lambda: not lives(child) and source.state != "active")
    answer = await source.call("good", {}, tool_id="bad/good")

    assert "pong" == answer.text
    assert 1 == lines(record).count("call good")


async def test_call_that_an_ended_child_did_not_read_is_sent_to_the_next_child(
    hostile: Hostile, record: Path
) -> None:
    """No byte of the call reached the first child, so it cannot have run."""
    source = hostile("deaf")
    await source.list_tools()
    answer = await source.call("good", {}, tool_id="x")

    assert "pong" == answer.text
    assert ["initialized", "initialized", "call good"] == lines(record)


async def test_slow_server_is_asked_for_its_protocol_version_again(hostile: Hostile) -> None:
    """The server answers the first request only after the gateway has stopped waiting for it."""
    listing = await hostile("modern_late").list_tools()

    assert ["good"] == [tool.name for tool in listing.tools]


async def test_cancelled_call_is_cancelled_at_the_server(hostile: Hostile, record: Path) -> None:
    """The session stays open for further calls."""
    source = hostile("plain")
    calling = asyncio.create_task(source.call("slow", {}, tool_id="x"))
    await wait_for_lines(record, "call slow")

    calling.cancel()
    await wait_for_lines(record, "cancelled")
    answer = await source.call("good", {}, tool_id="x")

    assert "pong" == answer.text
    assert 1 == lines(record).count("initialized")


async def test_result_keeps_every_content_block(hostile: Hostile) -> None:
    """The result also contains blocks of unknown kinds."""
    answer = await hostile("blocks").call("good", {}, tool_id="x")

    assert ["text", "hologram", "resource", "image"] == [block.type for block in answer.content]
    assert {"type": "text", "text": "one", "extra": 1} == answer.content[0].data
    assert {"type": "hologram", "depth": 3} == answer.content[1].data
    assert "one\ntwo" == answer.text
    assert [None, {"a": None}] == answer.structured
    assert answer.is_error


@pytest.mark.parametrize(
    ("mode", "reason"),
    [
        ("no_content", "in a form that MCP does not define"),
        ("bad_text", "in a form that MCP does not define"),
        ("bad_image", "in a form that MCP does not define"),
        ("no_kind", "in a form that MCP does not define"),
        ("deep", "in a form that MCP does not define"),
        ("modern_asks", "asks again"),
    ],
)
async def test_error_about_a_malformed_answer_omits_the_servers_text(
    hostile: Hostile, mode: str, reason: str
) -> None:
    """A malformed answer may contain a secret or an argument."""
    source = hostile(mode)

    with pytest.raises(UpstreamError, match=reason) as raised:
        await source.call("good", {"a": 1}, tool_id="x")

    assert "secret" not in str(raised.value)


async def test_listing_without_a_list_raises_an_error(hostile: Hostile) -> None:
    """A missing list must not count as an empty list, which would remove all tools."""
    with pytest.raises(UpstreamError, match="in a form that MCP does not define"):
        await hostile("no_list").list_tools()
