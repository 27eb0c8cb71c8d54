from __future__ import annotations

import asyncio

import pytest

from gateway.errors import ConfigError
from gateway.plugins.quality import FixedSource, as_sources
from gateway.plugins.quality.distractors import distractors
from tests.conftest import OpenGateway
from tests.plugins.quality.catalogs import entity


def ids(*sources: FixedSource) -> list[str]:
    listings = [(source.server, asyncio.run(source.list_tools())) for source in sources]
    return [f"{server}/{tool.name}" for server, listing in listings for tool in listing.tools]


def test_distractors_returns_whole_servers_up_to_the_count_of_tools() -> None:
    thirty, every = distractors(30), distractors(10_000)
    others = distractors(30, without={thirty[0].server})

    assert (30, 30) == (len(ids(*thirty)), len(ids(*others)))
    assert 1000 <= len(ids(*every)) == len({*ids(*every)})
    assert () == distractors(0)
    assert thirty[0].server not in {source.server for source in others}


def test_as_sources_keeps_tool_ids(open_gateway: OpenGateway) -> None:
    tools = [entity("a/x", "Does x."), entity("b/y", "Does y."), entity("a/z", "Does z.")]
    gateway = open_gateway()
    for source in as_sources(tools):
        gateway.add_source(source)
    listed = gateway.bridge.call(gateway.list_tools)

    assert {"a/x", "a/z", "b/y"} == {source_tool.id for source_tool in listed}
    with pytest.raises(ConfigError, match="only be listed"):
        asyncio.run(as_sources(tools)[0].call("x", {}, tool_id="a/x"))
