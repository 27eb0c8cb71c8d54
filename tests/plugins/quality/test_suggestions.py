"""Search texts are kept where they help and hide no other tool."""

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
    """Eight tools of one kind, and one that nobody finds."""
    strategy: Strategy = request.param
    gateway = open_gateway(strategy=strategy, embedder=HashingEmbedder())
    gateway.add_source(ListSource("desk", [tool("set_point", "Moves a value."), *ROOMS]))
    return gateway


@pytest.fixture
def suggest(gateway: Gateway) -> Suggest:
    """Lint it with texts that are given; those that are kept, by tool."""

    def run(texts: Mapping[str, str], *asked: EvalRequest) -> dict[str, Suggestion]:
        async def write(tools: Sequence[Entity]) -> Mapping[str, str]:
            assert "desk/set_point" in {each.id for each in tools}
            return texts

        report = gateway.bridge.call(lambda: lint(gateway, asked, write=write))
        return {each.tool: each for each in report.suggestions}

    return run


def test_a_text_that_helps_is_suggested_and_nothing_changes(
    gateway: Gateway, suggest: Suggest
) -> None:
    """The host's own requests decide where there are any."""
    kept = suggest({"desk/set_point": GOOD}, COLD)

    assert (GOOD, "user", 1, 0, 1) == (
        kept["desk/set_point"].search_text,
        kept["desk/set_point"].judged_by,
        kept["desk/set_point"].requests,
        kept["desk/set_point"].before,
        kept["desk/set_point"].after,
    )
    entities = gateway.bridge.call(gateway.snapshot).entities
    assert {""} == {each.hints.search_text for each in entities}


@pytest.mark.parametrize("text", ["", "Something else altogether."])
def test_a_text_that_does_not_help_is_none(suggest: Suggest, text: str) -> None:
    assert {} == suggest({"desk/set_point": text}, COLD)


def test_a_text_that_hides_a_neighbour_is_not_kept(open_gateway: OpenGateway) -> None:
    """Five tools stand before it; with the text a sixth would push one of them out."""
    gateway = open_gateway()
    rivals = [tool(name, "Bill.") for name in ("aa", "bb", "cc", "dd", "ee")]
    gateway.add_source(ListSource("desk", [tool("set_point", "Moves a value."), *rivals]))
    asked = [EvalRequest(text="bill", wanted=((each.name,),)) for each in rivals]
    own = EvalRequest(text="bill them", wanted=(("set_point",),))

    async def write(tools: Sequence[Entity]) -> Mapping[str, str]:
        return {each.id: "Bill bill bill." for each in tools}

    alone = gateway.bridge.call(lambda: lint(gateway, [own], write=write))
    among = gateway.bridge.call(lambda: lint(gateway, [own, *asked], write=write))

    assert "desk/set_point" in {each.tool for each in alone.suggestions}
    assert () == among.suggestions


def test_a_search_text_of_the_host_stays(open_gateway: OpenGateway) -> None:
    """None is written over."""
    gateway = open_gateway()
    gateway.set_rules({"desk/set_point": Access(search_text="Moves nothing.")})
    gateway.add_source(ListSource("desk", [tool("set_point", "Moves a value."), *ROOMS]))

    async def write(tools: Sequence[Entity]) -> Mapping[str, str]:
        return {each.id: GOOD for each in tools if each.id == "desk/set_point"}

    assert () == gateway.bridge.call(lambda: lint(gateway, [COLD], write=write)).suggestions


SCHEMA = {"properties": {"unitOf": {"enum": ["deg_c", 7]}, "at": {"type": "string"}}}


def test_rules_say_the_name_its_verbs_the_values_and_the_description() -> None:
    texts = asyncio.run(write_by_rules([entity("a/get_roomHeat", "Tell how warm it is.", SCHEMA)]))

    *said, verbs = texts["a/get_roomHeat"].split(". ")
    assert ["get room heat", "Tell how warm it is", "unit of deg c"] == said
    assert {"fetch", "read", "show"} <= {*verbs.split(", ")}


class Writer:
    """Knows one tool."""

    async def ask(self, instructions: str, text: str, *, max_tokens: int) -> ModelReply:
        assert "do not follow" in instructions
        if "a/known" not in text:
            raise OSError("no such model")
        return ModelReply(text="Makes it\n cosy. ")


def test_a_model_that_fails_leaves_the_text_of_the_rules() -> None:
    tools = [entity("a/known", "Knows."), entity("a/other", "Others.")]
    told: list[str] = []
    work = write_by_model(tools, Writer(), Telemetry(), on_failure=told.append)
    texts = asyncio.run(work)
    by_rules = asyncio.run(write_by_rules(tools))

    assert {"a/known": "Makes it cosy.", "a/other": by_rules["a/other"]} == texts
    assert ["a/other: the model could not be asked: OSError"] == [
        text.partition("OSError")[0] + "OSError" for text in told
    ]
