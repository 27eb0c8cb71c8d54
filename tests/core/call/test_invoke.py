"""Calls of tools by `Gateway.invoke`."""

from __future__ import annotations

import asyncio

import pytest

from gateway.errors import InvalidArgumentsError, InvalidRequestError, UnknownToolError
from gateway.gateway import Gateway
from gateway.types import Access, Caller, Hints, ToolDefinition
from tests.conftest import OpenGateway
from tests.fakes import ListSource, Shelf, tool

OPS = Access(scopes=frozenset({"ops"}))


@pytest.fixture
def shelf() -> Shelf:
    return Shelf(
        [
            ToolDefinition(
                name="pay.invoice",
                description="Pay an invoice.",
                input_schema={
                    "type": "object",
                    "properties": {"id": {"type": "integer"}},
                    "required": ["id"],
                },
            ),
            tool("fail"),
            tool("wait"),
            tool("status"),
        ]
    )


@pytest.fixture
def gateway(open_gateway: OpenGateway, shelf: Shelf) -> Gateway:
    gateway = open_gateway()
    gateway.add_server("shelf", server=shelf.server)
    gateway.add_server("other", server=Shelf([tool("status"), tool("hidden")]).server, hints={
        "hidden": Hints(enabled=False)
    })  # fmt: skip
    return gateway


@pytest.mark.parametrize("name", ["shelf/pay.invoice", "pay_invoice", "pay.invoice"])
async def test_invoke_accepts_id_exposed_name_or_source_name(
    gateway: Gateway, shelf: Shelf, name: str
) -> None:
    """The source always receives the name that it uses itself."""
    answer = await gateway.invoke(name, {"id": 7})

    assert ("shelf/pay.invoice", "called pay.invoice", False) == (
        answer.tool_id,
        answer.text,
        answer.is_error,
    )
    assert [("pay.invoice", {"id": 7})] == shelf.calls


async def test_ambiguous_source_name_is_refused_with_the_choices(gateway: Gateway) -> None:
    """A call of a guessed tool could do harm. Exposed names are never ambiguous."""
    gateway.add_tool(lambda: "on", name="status", description="Say it.", access=OPS)

    with pytest.raises(InvalidRequestError, match="other_status, shelf_status"):
        await gateway.invoke("status")

    assert "on" == (await gateway.invoke("status", caller=Caller(scopes=OPS.scopes))).text
    assert "called status" == (await gateway.invoke("shelf_status")).text


@pytest.mark.parametrize("name", ["pay_invoise", "PayInvoice"])
async def test_error_for_an_unknown_name_lists_similar_names(gateway: Gateway, name: str) -> None:
    """Names that differ only in case are not equal."""
    with pytest.raises(UnknownToolError) as caught:
        await gateway.invoke(name, {"id": 7})

    assert "pay_invoice" == caught.value.near[0]
    assert name == caught.value.name


async def test_error_for_an_unknown_name_counts_unlisted_sources(gateway: Gateway) -> None:
    """The error does not name the sources, because the caller may not be allowed to know them."""
    late = ListSource("late", [tool("post")])
    late.fail_with = OSError("away")
    gateway.add_source(late)

    with pytest.raises(UnknownToolError, match=r"could not be listed, or not yet: 1\.") as caught:
        await gateway.invoke("post")

    assert 1 == caught.value.unlisted
    assert "late" not in str(caught.value)


@pytest.mark.parametrize("name", ["", "  "])
async def test_invoke_refuses_an_empty_tool_name(gateway: Gateway, name: str) -> None:
    with pytest.raises(InvalidRequestError, match="name is empty"):
        await gateway.invoke(name)


async def test_invalid_arguments_are_refused_with_the_schema(
    gateway: Gateway, shelf: Shelf
) -> None:
    """Nothing is sent. A model corrects its arguments by the faults and the schema."""
    with pytest.raises(InvalidArgumentsError) as caught:
        await gateway.invoke("pay_invoice", {"id": "seven"})

    assert ("id: 'seven' is not of type 'integer'",) == caught.value.faults
    assert ["id"] == caught.value.schema["required"]
    assert [] == shelf.calls


async def test_error_reported_by_a_tool_is_returned(gateway: Gateway) -> None:
    answer = await gateway.invoke("fail")

    assert (True, "called fail") == (answer.is_error, answer.text)


async def test_cancelled_caller_cancels_the_call(gateway: Gateway, shelf: Shelf) -> None:
    calling = asyncio.ensure_future(gateway.invoke("wait"))
    await gateway.bridge.run(shelf.waiting.wait)

    calling.cancel()
    await asyncio.wait([calling])
    async with asyncio.timeout(20):
        await gateway.bridge.run(shelf.cancelled.wait)

    assert calling.cancelled()
    assert 1 == len(shelf.calls)
    assert "called status" == (await gateway.invoke("shelf/status")).text


async def test_tool_of_a_removed_server_is_unknown(gateway: Gateway) -> None:
    await gateway.report()
    await gateway.remove_server("other")

    with pytest.raises(UnknownToolError):
        await gateway.invoke("other/status")


async def test_error_for_an_entity_object_advises_to_pass_its_id(gateway: Gateway) -> None:
    (match, *_) = (await gateway.search("pay an invoice")).matches
    entity = await gateway.catalog.get(match.id)

    for value, message in (
        (match, "got Match: pass match.id"),
        (entity, "got Entity: pass entity.id"),
    ):
        with pytest.raises(InvalidRequestError, match=f"^the tool must be a text, {message}$"):
            await gateway.invoke(value, {"id": 7})  # type: ignore[arg-type]  # (the point)
        with pytest.raises(InvalidRequestError, match=f"^the tool must be a text, {message}$"):
            await gateway.next_steps([value])  # type: ignore[list-item]  # (the point)
    with pytest.raises(InvalidRequestError, match=r"^the tool must be a text, got int$"):
        await gateway.invoke(3)  # type: ignore[arg-type]  # (the point)
    assert "called pay.invoice" == (await gateway.invoke(match.id, {"id": 7})).text


@pytest.mark.parametrize("scopes", [{"x"}, ["x"], (), frozenset()])
async def test_caller_accepts_any_collection_of_texts_as_scopes(
    gateway: Gateway, scopes: frozenset[str]
) -> None:
    answer = await gateway.invoke("pay_invoice", {"id": 7}, caller=Caller(scopes=scopes))

    assert not answer.is_error


@pytest.mark.parametrize("scopes", ["x", 3, [3], ""])
async def test_caller_refuses_scopes_of_other_types(
    gateway: Gateway, scopes: frozenset[str]
) -> None:
    """The letters of a single text would be used as scopes."""
    with pytest.raises(TypeError, match=r"^Caller: scopes must be a collection of texts, got "):
        await gateway.invoke("pay_invoice", {"id": 7}, caller=Caller(scopes=scopes))
