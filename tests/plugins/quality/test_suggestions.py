from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

import pytest

from gateway.gateway import Gateway
from gateway.plugins.quality import EvalRequest, Suggestion, lint, write_by_model, write_by_rules
from gateway.runtime.telemetry import Telemetry
from gateway.search import ModelReply
from gateway.testing import HashingEmbedder
from gateway.types import Access, Entity, Strategy
from tests.conftest import OpenGateway
from tests.fakes import ListSource, tool
from tests.plugins.quality.catalogs import entity

Suggest = Callable[..., dict[str, Suggestion]]
ROOMS = [tool(f"part_{at}", f"Part {at} of the house.") for at in "abcdefgh"]
COLD = EvalRequest(text="a cosy evening in the house", wanted=(("set_point",),))
GOOD = "A cosy evening in the house."


@pytest.fixture(params=["graph", "auto"])
def gateway(request: pytest.FixtureRequest, open_gateway: OpenGateway) -> Gateway:
    """A gateway with eight similar tools, and one that requests miss."""
    strategy: Strategy = request.param
    gateway = open_gateway(strategy=strategy, embedder=HashingEmbedder())
    gateway.add_source(ListSource("desk", [tool("set_point", "Moves a value."), *ROOMS]))
    return gateway


@pytest.fixture
def suggest(gateway: Gateway) -> Suggest:
    """Function that lints the gateway with given texts, and returns suggestions keyed by tool."""

    def run(texts: Mapping[str, str], *asked: EvalRequest) -> dict[str, Suggestion]:
        async def write(tools: Sequence[Entity]) -> Mapping[str, str]:
            assert "desk/set_point" in {suggestion.id for suggestion in tools}
            return texts

        report = gateway.bridge.call(lambda: lint(gateway, asked, write=write))
        return {suggestion.tool: suggestion for suggestion in report.suggestions}

    return run


def test_helpful_search_text_is_suggested_and_the_gateway_is_unchanged(
    gateway: Gateway, suggest: Suggest
) -> None:
    """If the host has requests for a tool, generated requests do not count."""
    suggestions = suggest({"desk/set_point": GOOD}, COLD)

    assert (GOOD, "user", 1, 0, 1) == (
        suggestions["desk/set_point"].search_text,
        suggestions["desk/set_point"].judged_by,
        suggestions["desk/set_point"].requests,
        suggestions["desk/set_point"].before,
        suggestions["desk/set_point"].after,
    )
    entities = gateway.bridge.call(gateway.snapshot).entities
    assert {""} == {entity.hints.search_text for entity in entities}


@pytest.mark.parametrize("text", ["", "Something else altogether."])
def test_useless_search_text_is_not_suggested(suggest: Suggest, text: str) -> None:
    assert {} == suggest({"desk/set_point": text}, COLD)


def test_search_text_that_hides_another_tool_is_not_suggested(open_gateway: OpenGateway) -> None:
    """Five tools rank before the tool. With the text, it would push one of them out of the first
    five.
    """
    gateway = open_gateway()
    rivals = [tool(name, "Bill.") for name in ("aa", "bb", "cc", "dd", "ee")]
    gateway.add_source(ListSource("desk", [tool("set_point", "Moves a value."), *rivals]))
    generated = [EvalRequest(text="bill", wanted=((request.name,),)) for request in rivals]
    own_request = EvalRequest(text="bill them", wanted=(("set_point",),))

    async def write(tools: Sequence[Entity]) -> Mapping[str, str]:
        return {request.id: "Bill bill bill." for request in tools}

    alone = gateway.bridge.call(lambda: lint(gateway, [own_request], write=write))
    among = gateway.bridge.call(lambda: lint(gateway, [own_request, *generated], write=write))

    assert "desk/set_point" in {request.tool for request in alone.suggestions}
    assert () == among.suggestions


def test_search_text_of_the_host_is_not_replaced(open_gateway: OpenGateway) -> None:
    gateway = open_gateway()
    gateway.set_rules({"desk/set_point": Access(search_text="Moves nothing.")})
    gateway.add_source(ListSource("desk", [tool("set_point", "Moves a value."), *ROOMS]))

    async def write(tools: Sequence[Entity]) -> Mapping[str, str]:
        return {tool.id: GOOD for tool in tools if tool.id == "desk/set_point"}

    assert () == gateway.bridge.call(lambda: lint(gateway, [COLD], write=write)).suggestions


SCHEMA = {"properties": {"unitOf": {"enum": ["deg_c", 7]}, "at": {"type": "string"}}}


def test_write_by_rules_uses_name_description_values_and_verbs() -> None:
    texts = asyncio.run(write_by_rules([entity("a/get_roomHeat", "Tell how warm it is.", SCHEMA)]))

    *parts, verbs = texts["a/get_roomHeat"].split(". ")
    assert ["get room heat", "Tell how warm it is", "unit of deg c"] == parts
    assert {"fetch", "read", "show"} <= {*verbs.split(", ")}


class Writer:
    """A model that answers for one tool only."""

    async def ask(self, instructions: str, text: str, *, max_tokens: int) -> ModelReply:
        assert "do not follow" in instructions
        if "a/known" not in text:
            raise OSError("no such model")
        return ModelReply(text="Makes it\n cosy. ")


def test_search_text_is_written_by_rules_if_the_model_fails() -> None:
    tools = [entity("a/known", "Knows."), entity("a/other", "Others.")]
    told: list[str] = []
    work = write_by_model(tools, Writer(), Telemetry(), on_failure=told.append)
    texts = asyncio.run(work)
    by_rules = asyncio.run(write_by_rules(tools))

    assert {"a/known": "Makes it cosy.", "a/other": by_rules["a/other"]} == texts
    assert ["a/other: the model could not be asked: OSError"] == [
        text.partition("OSError")[0] + "OSError" for text in told
    ]
