"""Repair of invalid messages on standard input, which the SDK would drop."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCRequest, jsonrpc_message_adapter
from pydantic import ValidationError

from gateway.serve.mcp_server import Item, repair

REQUEST = '{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"q": "%s"}}'


def read(line: str) -> Item:
    """Parse *line* as the SDK's reader does. Return the message, or the error."""
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValidationError as error:
        return error


async def repair_all(*items: Item) -> list[Item]:
    """Return the items after `repair`."""

    async def incoming() -> AsyncIterator[Item]:
        for item in items:
            yield item

    return [item async for item in repair(incoming())]


@pytest.mark.parametrize(
    ("written", "received"),
    [
        (r"\ud800 mail", "? mail"),
        (r"mail \uDFFF", "mail ?"),
        (r"\ud83d\ude00 \ud83d", "\U0001f600 ?"),
        (r"\\ud800 \udc00", "\\ud800 ?"),
    ],
)
async def test_messages_with_lone_surrogates_are_repaired(written: str, received: str) -> None:
    """The SDK would drop such a message, and its sender would wait forever."""
    refused = read(REQUEST % written)
    assert isinstance(refused, ValidationError)

    (item,) = await repair_all(refused)

    assert isinstance(item, SessionMessage)
    assert isinstance(item.message, JSONRPCRequest)
    assert (7, {"q": received}) == (item.message.id, item.message.params)


async def test_repair_keeps_other_messages_and_errors() -> None:
    good = read(REQUEST % "mail")
    items = (good, read("garbage"), read(r'{"id": "\ud800"}'), read("[]"), OSError("gone"))

    assert list(items) == await repair_all(*items)
