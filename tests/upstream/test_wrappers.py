"""Wrappers beyond what `test_source_conformance` holds for every source."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gateway.errors import ConfigError, InvalidRequestError, UpstreamError
from gateway.gateway import Gateway
from gateway.types import JsonObject, ToolDefinition
from gateway.upstream.shapes import Filter, Prefix, Rename
from gateway.upstream.source import Listing
from gateway.upstream.wrappers import Combined, Shaped
from tests.conftest import OpenGateway
from tests.fakes import ListSource, names, tool, until


def pair() -> tuple[ListSource, ListSource]:
    return ListSource("a", [tool("x"), tool("y")]), ListSource("b", [tool("x"), tool("z")])


async def test_what_is_not_shown_cannot_be_called() -> None:
    """A filter is no hint to a model, it is a wall."""
    source = Shaped(ListSource("a", [tool("x"), tool("y")]), Filter(deny=("y",)), Prefix("p_"))

    assert ["p_x"] == [each.name for each in (await source.list_tools()).tools]
    assert "called x" == (await source.call("p_x", {}, tool_id="a/p_x")).text
    for name in ("x", "y", "p_y"):
        answer = await source.call(name, {}, tool_id="t")
        assert (True, f"unknown tool {name!r}") == (answer.is_error, answer.text)


def test_wrappers_pass_on_who_they_stand_for() -> None:
    """One that is not trusted makes none of the combination trusted."""
    trusted, other = ListSource("a", trusted=True), ListSource("b")

    assert ("a", True) == (Shaped(trusted).server, Shaped(trusted, Prefix("p_")).trusted)
    assert [True, False] == [
        Combined("c", [trusted]).trusted,
        Combined("c", [trusted, other]).trusted,
    ]


@pytest.mark.parametrize("turn", [1, -1])
async def test_a_name_that_two_have_is_qualified_in_both(turn: int) -> None:
    """Whichever comes first; each call reaches its own."""
    first, second = pair()[::turn]
    combined = Combined("c", [first, second])

    listed = {each.name for each in (await combined.list_tools()).tools}
    answers = {name: (await combined.call(name, {}, tool_id="t")).text for name in listed}

    assert {"a_x": "called x", "y": "called y", "b_x": "called x", "z": "called z"} == answers


async def test_a_name_that_stays_taken_is_told() -> None:
    """Names are unique, whatever the sources call themselves."""
    first, second = pair()
    second.tools.append(tool("a_x"))
    listing = await Combined("c", [first, second]).list_tools()

    assert ["a_x", "y", "b_x", "z"] == [each.name for each in listing.tools]
    assert ["'b': tool 'a_x': another one is called 'a_x'"] == [
        note.detail for note in listing.diagnostics
    ]


async def test_one_source_that_fails_leaves_the_others_and_its_own_of_before() -> None:
    """And nothing but nothing is an error."""
    first, second = pair()
    combined = Combined("c", [first, second])
    second.fail_with = UpstreamError("b", "is down")
    without = await combined.list_tools()
    second.fail_with = None
    await combined.list_tools()
    second.fail_with = RuntimeError("no")
    kept = await combined.list_tools()
    first.fail_with = UpstreamError("a", "is down too")

    assert ["x", "y"] == [each.name for each in without.tools]
    assert ["a_x", "y", "b_x", "z"] == [each.name for each in kept.tools]
    assert ["'b': is down", "'b': RuntimeError"] == [
        note.detail for each in (without, kept) for note in each.diagnostics
    ]
    with pytest.raises(UpstreamError, match="is down too"):
        await combined.list_tools()


async def test_a_part_that_failed_is_tried_again_by_the_gateway(
    open_gateway: OpenGateway,
) -> None:
    """As a whole source would be."""
    clock = [0.0]
    first, second = pair()
    second.fail_with = UpstreamError("b", "is down")
    gateway: Gateway = open_gateway(clock=lambda: clock[0])
    gateway.add_source(Combined("c", [first, second]))
    without = await gateway.search()
    second.fail_with = None
    clock[0] = 31.0

    async def whole() -> bool:
        return ["a_x", "b_x", "y", "z"] == names(await gateway.search())

    await until(whole)
    assert ["x", "y"] == names(without)


@pytest.mark.parametrize("sources", [[], [ListSource("a"), ListSource("a")]])
def test_a_combination_needs_sources_of_different_names(sources: list[ListSource]) -> None:
    """Else nobody could tell them apart."""
    with pytest.raises(ConfigError, match="each of another name"):
        Combined("c", sources)


async def test_a_shaped_source_is_found_and_called_by_what_it_shows(
    open_gateway: OpenGateway,
) -> None:
    """Through the whole gateway."""
    gateway = open_gateway()
    source = ListSource("a", [tool("send_mail", "Send an e-mail."), tool("drop_mail", "Drop it.")])
    gateway.add_source(
        Shaped(source, Filter(deny=("drop_*",)), Rename({"send_mail": "post_letter"}))
    )

    found = await gateway.search("e-mail")

    assert ["a/post_letter"] == [match.id for match in found.matches]
    assert "called send_mail" == (await gateway.invoke("a/post_letter", {})).text


class Shop(ListSource):
    """A source with a prompt besides; answers with what it was asked."""

    async def list_tools(self) -> Listing:
        prompt = ToolDefinition(kind="prompt", name="x")
        return replace(await super().list_tools(), things=(prompt,))

    async def ask(self, method: str, params: JsonObject) -> JsonObject:
        return {"asked": method, **params}


async def test_shapes_are_for_tools_alone() -> None:
    """Resources and prompts are passed through, from a source that has any."""
    shaped = Shaped(Shop("a", [tool("x")]), Prefix("p_"))
    plain = Shaped(ListSource("b", [tool("x")]), Prefix("p_"))
    listing = await shaped.list_tools()

    assert (["p_x"], ["x"]) == (
        [each.name for each in listing.tools],
        [each.name for each in listing.things],
    )
    assert {"asked": "prompts/get", "name": "x"} == await shaped.ask("prompts/get", {"name": "x"})
    with pytest.raises(InvalidRequestError, match="no resources and no prompts"):
        await plain.ask("prompts/get", {"name": "x"})
