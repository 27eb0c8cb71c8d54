"""Examples of tools (requests that a tool serves): where they are declared, and their effect."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gateway.config.mcp_json import parse_manifest
from gateway.gateway import Gateway
from gateway.index import EXAMPLE_SHARE, lean_to_examples
from gateway.testing import HashingEmbedder
from gateway.types import Access, Hints, ToolDefinition
from tests.conftest import OpenGateway
from tests.fakes import ListSource, names, tool

REQUESTS = ("it is freezing in here", "make it cosy before the guests come")
DESCRIPTION = "Moves the value of a loop."


def with_hints(gateway: Gateway, _: Path) -> None:
    gateway.add_source(
        ListSource("house", [tool("set_point", DESCRIPTION)]),
        hints={"set_point": Hints(examples=REQUESTS)},
    )


def with_a_rule(gateway: Gateway, _: Path) -> None:
    gateway.add_source(ListSource("house", [tool("set_point", DESCRIPTION)]))
    gateway.set_rules({"house/set_*": Access(examples=REQUESTS)})


def with_a_file(gateway: Gateway, folder: Path) -> None:
    gateway.add_source(ListSource("house", [tool("set_point", DESCRIPTION)]))
    file = folder / "mcp.json"
    rules = {"house/set_point": {"examples": REQUESTS}}
    file.write_text(json.dumps({"mcpServers": {}, "rules": rules}), "utf-8")
    gateway.add_config(file)


@pytest.mark.parametrize("strategy", ["graph", "auto", "embeddings"])
@pytest.mark.parametrize("declare", [with_hints, with_a_rule, with_a_file])
async def test_search_finds_tool_by_its_examples(
    open_gateway: OpenGateway,
    catalog: tuple[ToolDefinition, ...],
    tmp_path: Path,
    strategy: str,
    declare: Any,
) -> None:
    """The description of the tool does not change."""
    gateway = open_gateway(catalog, strategy=strategy, embedder=HashingEmbedder())
    declare(gateway, tmp_path)

    result = await gateway.search("freezing, make it cosy")

    assert ("set_point", DESCRIPTION) == (result.matches[0].name, result.matches[0].description)
    assert "guests" not in repr(result)


async def test_examples_of_rules_and_hints_are_united(open_gateway: OpenGateway) -> None:
    """Examples that are removed later have no effect."""
    gateway = open_gateway()
    gateway.add_source(
        ListSource("house", [tool("set_point", DESCRIPTION)]),
        hints={"set_point": Hints(examples=REQUESTS[:1])},
    )
    gateway.set_rules({"*": Access(examples=("warm",)), "house/*": Access(examples=REQUESTS[1:])})
    added = [names(await gateway.search(word)) for word in ("freezing", "cosy", "warm")]
    gateway.set_rules({})

    assert [["set_point"]] * 3 == added
    assert [] == names(await gateway.search("cosy"))


async def test_only_new_examples_are_embedded(
    open_gateway: OpenGateway, catalog: tuple[ToolDefinition, ...]
) -> None:
    gateway = open_gateway(catalog, strategy="auto", embedder=HashingEmbedder())
    counts = []
    for texts in ((), REQUESTS, (*REQUESTS, "warm"), REQUESTS):
        gateway.set_rules({"shelf/send_email": Access(examples=texts)})
        counts.append((await gateway.report()).embedded_texts)

    assert [24, 2, 1, 0] == counts


def test_more_examples_move_the_vector_of_a_tool_further() -> None:
    """One example has half of the maximum effect. Without examples the vector does not change."""
    vector, other = np.eye(2, dtype=np.float32)
    turned = [lean_to_examples(vector, [other] * count) for count in (0, 1, 3, 1000)]

    np.testing.assert_array_equal(vector, turned[0])
    assert turned == sorted(turned, key=lambda row: float(row[1]))
    assert [row[1] / row.sum() for row in turned] == pytest.approx(
        [EXAMPLE_SHARE * share for share in (0, 1 / 2, 3 / 4, 1000 / 1001)]
    )
    np.testing.assert_allclose(np.linalg.norm(turned, axis=1), 1, atol=1e-6)


def test_config_file_with_invalid_examples_is_refused() -> None:
    with pytest.raises(Exception, match=r"'rules'.*examples"):
        parse_manifest({"mcpServers": {}, "rules": {"*": {"examples": [1]}}})
    with pytest.raises(TypeError, match="Access: examples must be a collection of texts"):
        Access(examples="warm")  # type: ignore[arg-type]
