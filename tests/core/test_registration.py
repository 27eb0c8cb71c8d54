"""Checks of arguments at registration, so that later searches do not fail because of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gateway.config import Manifest
from gateway.errors import ClosedError, ConfigError
from gateway.gateway import Gateway
from gateway.options import CacheOptions
from gateway.search import Caches
from gateway.testing import HashingEmbedder
from gateway.types import Hints
from tests.conftest import OpenGateway
from tests.fakes import ListSource, TableNormalizer, tool

_GRAPH = "a path, a Sequence of graphs.Document or a function that gives one"


def find() -> str:
    """Find a flight."""
    return "found"


HINTS = {
    "a dict": ({"tags": ("a",)}, "must be a Hints(…), got dict"),
    "a truth value": (
        Hints(read_only="yes"),  # type: ignore[arg-type]  # (the point)
        "read_only: expected bool or None",
    ),
    "a number": (Hints(tags=(3,)), "tags: expected tuple[str, ...], got (3,)"),  # type: ignore[arg-type]  # (the point)
}
WAYS: dict[str, Callable[[Gateway, Any], object]] = {
    "find": lambda gateway, hints: gateway.add_tool(find, hints=hints),
    "s/x": lambda gateway, hints: gateway.add_server("s", command="never", hints={"x": hints}),
    "shop/x": lambda gateway, hints: gateway.add_source(ListSource("shop"), hints={"x": hints}),
}


@pytest.mark.parametrize("owner", WAYS)
@pytest.mark.parametrize("kind", HINTS)
async def test_invalid_hints_are_refused_at_registration(
    open_gateway: OpenGateway, owner: str, kind: str
) -> None:
    """The error names the invalid hints. Tools that were added earlier are still found."""
    gateway = open_gateway([tool("book", "Book a flight.")])
    hints, message = HINTS[kind]

    with pytest.raises(ConfigError) as caught:
        WAYS[owner](gateway, hints)
    result = await gateway.search("book a flight")

    assert str(caught.value).startswith(f"hints of {owner!r}")
    assert message in str(caught.value)
    assert ["book"] == [match.name for match in result.matches]


def test_hints_of_a_server_are_keyed_by_tool_name(open_gateway: OpenGateway) -> None:
    """Hints under the server's own name do not apply to its tools."""
    gateway = open_gateway()

    odd: list[Any] = [Hints(), []]
    for hints in odd:
        with pytest.raises(ConfigError, match="hints of server 's' must be a Mapping by the names"):
            gateway.add_server("s", command="never", hints=hints)
    gateway.add_server("s", command="never")

    assert ["s"] == list(gateway.server_states())


@pytest.mark.parametrize(
    ("function", "options", "message"),
    [
        ("find", {}, "a tool is a function, got str"),
        (find, {"name": 3}, "name must be a text that is not blank, got 3"),
        (find, {"name": " "}, "name must be a text that is not blank, got ' '"),
        (find, {"description": b"x"}, "description of 'find' must be a text, got b'x'"),
    ],
)
def test_name_and_description_of_a_function_must_be_texts(
    open_gateway: OpenGateway, function: Any, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        open_gateway().add_tool(function, **options)

    assert message == str(caught.value)


async def test_hints_accept_lists(open_gateway: OpenGateway) -> None:
    """JSON has no tuples."""
    gateway = open_gateway()

    gateway.add_tool(find, hints=Hints(tags=["Travel"], aliases=["seek"]))  # type: ignore[arg-type]  # (the point)

    assert {"travel": 1} == await gateway.catalog.tags()


HIDDEN = "hush"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"command": ["uvx", "x"]}, "command must be a text"),
        ({"command": "x", "args": HIDDEN}, "args must be a list"),
        ({"command": "x", "args": [80]}, "args[0] must be a text"),
        ({"command": "x", "args": 80}, "args must be a list"),
        ({"command": "x", "env": [HIDDEN]}, "env must be an object"),
        ({"command": "x", "env": {"A": 3}}, "env.A must be a text"),
        ({"command": "x", "cwd": 3}, "cwd must be a path"),
        ({"url": 3}, "url must be a text"),
        ({"url": "http://h", "headers": HIDDEN}, "headers must be an object"),
    ],
)
def test_server_arguments_are_checked_at_registration(
    open_gateway: OpenGateway, options: dict[str, Any], message: str
) -> None:
    """Errors omit the values, which may be secrets."""
    gateway = open_gateway()

    with pytest.raises(ConfigError) as caught:
        gateway.add_server("s", **options)

    assert str(caught.value).startswith(f"server 's': {message}")
    assert HIDDEN not in str(caught.value)
    assert {} == gateway.server_states()


def test_add_config_accepts_a_path_or_a_manifest(open_gateway: OpenGateway) -> None:
    config: Any = {"mcpServers": {}}

    with pytest.raises(ConfigError, match="config must be a path or a Manifest, got dict"):
        open_gateway().add_config(config)


def test_error_for_a_used_tool_name_says_how_to_replace_the_tool(open_gateway: OpenGateway) -> None:
    gateway = open_gateway()
    gateway.add_tool(find)

    with pytest.raises(ConfigError, match="remove it first, or pass replace=True or another name"):
        gateway.add_tool(find)

    assert "local/find" == gateway.add_tool(find, replace=True)


@pytest.mark.parametrize(
    "register",
    [
        lambda gateway: gateway.add_tool(find),
        lambda gateway: gateway.add_server("s", command="never"),
        lambda gateway: gateway.add_virtual_server("v", {"a": "s/a"}),
        lambda gateway: gateway.add_config(Manifest(servers={})),
        lambda gateway: gateway.add_source(ListSource("shop")),
    ],
    ids=["tool", "server", "virtual server", "config", "source"],
)
def test_closed_gateway_refuses_registrations(
    open_gateway: OpenGateway, register: Callable[[Gateway], object]
) -> None:
    gateway = open_gateway()
    gateway.close()

    with pytest.raises(ClosedError, match="make a new one"):
        register(gateway)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"store": "x"}, "store must be a Store, got str"),
        ({"vector_store": object()}, "vector_store must be a VectorStore, got object"),
        ({"embedder": object()}, "embedder must be a name or an Embedder, got object"),
        ({"embedder": HashingEmbedder}, "embedder must be a name or an Embedder, got the class"),
        ({"normalizer": "gpt"}, "normalizer must be a Normalizer, got str"),
        ({"normalizer": HashingEmbedder()}, "normalizer must be a Normalizer, got HashingEmbedder"),
        ({"normalizer": TableNormalizer}, "normalizer must be a Normalizer, got the class Table"),
        ({"caches": {}}, "caches must be a Caches, got dict"),
        ({"caches": CacheOptions()}, "caches must be a Caches, got CacheOptions"),
        ({"caches": Caches}, "caches must be a Caches, got the class Caches"),
        ({"graph": 3}, f"graph must be {_GRAPH}, got int"),
        ({"graph": {"a.md"}}, f"graph must be {_GRAPH}, got set"),
        ({"graph": ["a.md"]}, f"graph must be {_GRAPH}, got a list with str"),
        ({"graph": (None,)}, f"graph must be {_GRAPH}, got a tuple with NoneType"),
        ({"graph": b"a.md"}, f"graph must be {_GRAPH}, got a bytes with int"),
    ],
)
def test_objects_of_the_host_must_have_the_right_type(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        Gateway(**options)

    assert str(caught.value).startswith(message)
