"""Servers that lie, stall and die: each costs no more than itself."""

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
from tests.core.mcp.conftest import PATIENCE_S, Hostile, lines, lives, noted, until


def names(diagnostics: tuple[Diagnostic, ...]) -> list[str]:
    return [note.detail.split(": ")[1] for note in diagnostics]


async def test_one_malformed_tool_costs_one_tool(hostile: Hostile) -> None:
    """The SDK alone would lose the whole list."""
    listing = await hostile("malformed").list_tools()

    good, odd = listing.tools
    assert ("good", "Works.") == (good.name, good.description)
    assert ("odd_rest", "", "") == (odd.name, odd.title, odd.description)
    assert {"tool_quarantined"} == {note.code for note in listing.diagnostics}
    assert [
        "tool 'no_schema'",
        "tool 'string_schema'",
        "tool 'bad_properties'",
        "tool 'bad_required'",
        "tool 'bad_dialect'",
        "tool ''",
        "tool ''",
        "tool ''",
        f"tool '{'n' * MAX_NAME_CHARS}'",
        "tool 'hidden'",
        "tool 'good'",
    ] == names(listing.diagnostics)
    assert "twice" in listing.diagnostics[-1].detail


@pytest.mark.parametrize(("mode", "name"), [("deep", "deep"), ("modern_marked", "marked")])
async def test_a_tool_that_cannot_be_used_is_quarantined_by_name(
    hostile: Hostile, mode: str, name: str
) -> None:
    """One deeper than fast readers go; one that the protocol forbids and the SDK drops silently."""
    listing = await hostile(mode).list_tools()

    assert ["good"] == [tool.name for tool in listing.tools]
    assert [f"tool '{name}'"] == names(listing.diagnostics)


async def test_a_tool_whose_schema_costs_too_much_to_check_is_left_out(hostile: Hostile) -> None:
    """A few hundred bytes stand for 2^40 schemas; one that is only recursive costs nothing."""
    listing = await hostile("costly").list_tools()

    assert ["tree"] == [tool.name for tool in listing.tools]
    reasons = [note.detail.split(": ")[-1] for note in listing.diagnostics]
    applied = "a schema of it applies more than 5000 schemas to one value"
    endless = "a schema of it refers to itself without end"
    assert [*[applied] * 6, endless, endless, applied] == reasons


async def test_texts_are_cleaned_and_clipped_and_data_is_only_cleaned(hostile: Hostile) -> None:
    """Hidden characters carry instructions to a model; defaults must stay usable."""
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
async def test_a_listing_ends_even_if_the_server_does_not(
    hostile: Hostile, mode: str, count: int, reason: str
) -> None:
    """The SDK pages for ever."""
    listing = await hostile(mode, max_pages=5, max_tools=7).list_tools()

    assert count == len(listing.tools)
    cut = listing.diagnostics[-1]
    assert "listing_truncated" == cut.code
    assert reason in cut.detail


async def test_noise_on_the_side_is_tolerated_and_kept_from_the_terminal(
    hostile: Hostile, caplog: pytest.LogCaptureFixture
) -> None:
    """Real servers print to standard output; the SDK logs a traceback for each line."""
    caplog.set_level(logging.DEBUG, "gateway.upstream")

    listing = await hostile("garbage").list_tools()

    assert ["good"] == [tool.name for tool in listing.tools]
    assert all(entry.levelno == logging.DEBUG for entry in caplog.records)
    assert "bad: a line on standard output is no message" in caplog.messages


@pytest.mark.parametrize("mode", ["silent", "silent_list"])
async def test_a_silent_server_costs_its_limit_and_says_which(hostile: Hostile, mode: str) -> None:
    """Every wait has an end, and the message names the option that sets it."""
    source = hostile(mode, connect_timeout_s=0.5, list_timeout_s=0.5)

    with pytest.raises(UpstreamTimeoutError, match=r"(connect|list)_timeout_s"):
        await source.list_tools()


async def test_a_source_can_be_closed_while_it_connects(hostile: Hostile, record: Path) -> None:
    """A host that gives up must not wait for the connect limit."""
    source = hostile("silent", connect_timeout_s=500)
    listing = asyncio.create_task(source.list_tools())
    waiting = asyncio.create_task(source.call("good", {}, tool_id="x"))
    await noted(record, "heard")

    async with asyncio.timeout(PATIENCE_S):
        await asyncio.gather(source.close(), source.close())

    for task in (listing, waiting):
        with pytest.raises((UpstreamError, ClosedError)):
            await task


@pytest.mark.parametrize(
    ("mode", "remedy"),
    [
        ("exits_at_start", "ended before it answered: see what it wrote"),
        ("no_session", r"no MCP server that we understand \(error -32603\)$"),
    ],
)
async def test_a_program_that_opens_no_session_is_named_with_the_remedy(
    hostile: Hostile, mode: str, remedy: str
) -> None:
    """The SDK gives a nested group of errors; a person needs one sentence, without its words."""
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
async def test_a_lost_call_is_sent_again_only_if_a_trusted_server_says_it_may(
    hostile: Hostile, record: Path, mode: str, *, trusted: bool, calls: int
) -> None:
    """It may have run: sending money twice is worse than a failure. What a stranger says of its own
    tools may only make us more careful.
    """
    source = hostile(mode, trusted=trusted)
    await source.list_tools()

    with pytest.raises(UpstreamError, match="may or may not have been done") as raised:
        await source.call("good", {}, tool_id="bad/good")

    assert calls == lines(record).count("call good")
    assert ("lost", True) == (raised.value.kind, raised.value.sent)


async def test_a_call_that_never_left_connects_first(hostile: Hostile, record: Path) -> None:
    """A child that died in between is noticed without a request; the call then runs once."""
    source = hostile("pid")
    await source.list_tools()
    child = int(lines(record)[0])

    os.kill(child, signal.SIGKILL)
    await until(lambda: not lives(child) and source.state != "active")
    answer = await source.call("good", {}, tool_id="bad/good")

    assert "pong" == answer.text
    assert 1 == lines(record).count("call good")


async def test_a_call_that_a_child_refuses_to_read_is_sent_to_the_next_one(
    hostile: Hostile, record: Path
) -> None:
    """Not one byte of it left."""
    source = hostile("deaf")
    await source.list_tools()
    answer = await source.call("good", {}, tool_id="x")

    assert "pong" == answer.text
    assert ["initialized", "initialized", "call good"] == lines(record)


async def test_a_server_that_was_slow_to_start_is_asked_again_how_it_speaks(
    hostile: Hostile,
) -> None:
    """It took the first question for the beginning, long after it was given up."""
    listing = await hostile("modern_late").list_tools()

    assert ["good"] == [tool.name for tool in listing.tools]


async def test_a_cancelled_call_is_cancelled_at_the_server_by_name(
    hostile: Hostile, record: Path
) -> None:
    """The server gets the notification, and the session goes on."""
    source = hostile("plain")
    calling = asyncio.create_task(source.call("slow", {}, tool_id="x"))
    await noted(record, "call slow")

    calling.cancel()
    await noted(record, "cancelled")
    answer = await source.call("good", {}, tool_id="x")

    assert "pong" == answer.text
    assert 1 == lines(record).count("initialized")


async def test_every_block_of_an_answer_is_kept_whole(hostile: Hostile) -> None:
    """Blocks of kinds that we do not know are still the tool's answer."""
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
        ("no_content", "in a form that MCP does not know"),
        ("bad_text", "in a form that MCP does not know"),
        ("bad_image", "in a form that MCP does not know"),
        ("no_kind", "in a form that MCP does not know"),
        ("deep", "in a form that MCP does not know"),
        ("modern_asks", "asks again"),
    ],
)
async def test_an_answer_that_is_none_is_an_error_without_the_servers_words(
    hostile: Hostile, mode: str, reason: str
) -> None:
    """A malformed answer may hold a secret or an argument."""
    source = hostile(mode)

    with pytest.raises(UpstreamError, match=reason) as raised:
        await source.call("good", {"a": 1}, tool_id="x")

    assert "secret" not in str(raised.value)


async def test_a_listing_that_is_none_is_an_error(hostile: Hostile) -> None:
    """No list is not the same as an empty list."""
    with pytest.raises(UpstreamError, match="in a form that MCP does not know"):
        await hostile("no_list").list_tools()
