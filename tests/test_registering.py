"""What is registered is checked where it is given: a later search is none of the giver's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gateway.errors import ConfigError
from gateway.gateway import Gateway
from gateway.types import Hints
from tests.conftest import OpenGateway
from tests.fakes import ListSource, tool


def find() -> str:
    """Find a flight."""
    return "found"


SAID = {
    "a dict": ({"tags": ("a",)}, "must be a Hints(…), got dict"),
    "a truth value": (Hints(read_only="yes"), "read_only must be True or False or None, got 'yes'"),  # type: ignore[arg-type]  # (the point)
    "a number": (Hints(tags=(3,)), "tags must be"),  # type: ignore[arg-type]  # (the point)
}
WAYS: dict[str, Callable[[Gateway, Any], object]] = {
    "find": lambda gateway, hints: gateway.add_tool(find, hints=hints),
    "s/x": lambda gateway, hints: gateway.add_server("s", command="never", hints={"x": hints}),
    "shop/x": lambda gateway, hints: gateway.add_source(ListSource("shop"), hints={"x": hints}),
}


@pytest.mark.parametrize("whose", WAYS)
@pytest.mark.parametrize("said", SAID)
async def test_hints_that_are_none_are_refused_where_they_are_given(
    open_gateway: OpenGateway, whose: str, said: str
) -> None:
    """By name; what was there is found as before."""
    gateway = open_gateway([tool("book", "Book a flight.")])
    hints, told = SAID[said]

    with pytest.raises(ConfigError) as caught:
        WAYS[whose](gateway, hints)
    found = await gateway.search("book a flight")

    assert str(caught.value).startswith(f"hints of {whose!r}")
    assert told in str(caught.value)
    assert ["book"] == [each.name for each in found.matches]


def test_hints_of_a_server_stand_by_the_names_of_its_tools(open_gateway: OpenGateway) -> None:
    """Hints of the server itself are none of its tools'."""
    gateway = open_gateway()

    odd: list[Any] = [Hints(), []]
    for given in odd:
        with pytest.raises(
            ConfigError, match=r"hints of server 's' must be a Mapping by the names"
        ):
            gateway.add_server("s", command="never", hints=given)
    gateway.add_server("s", command="never")

    assert ["s"] == list(gateway.server_states())


@pytest.mark.parametrize(
    ("function", "said", "told"),
    [
        ("find", {}, "a tool is a function, got str"),
        (find, {"name": 3}, "name must be a text, got 3"),
        (find, {"description": b"x"}, "description of 'find' must be a text, got b'x'"),
    ],
)
def test_what_is_said_of_a_function_is_text(
    open_gateway: OpenGateway, function: Any, said: dict[str, Any], told: str
) -> None:
    """Else the next search would trip over it."""
    with pytest.raises(ConfigError) as caught:
        open_gateway().add_tool(function, **said)

    assert told == str(caught.value)


async def test_hints_may_be_lists(open_gateway: OpenGateway) -> None:
    """JSON has no tuples."""
    gateway = open_gateway()

    gateway.add_tool(find, hints=Hints(tags=["Travel"], aliases=["seek"]))  # type: ignore[arg-type]  # (the point)

    assert {"travel": 1} == await gateway.catalog.tags()
