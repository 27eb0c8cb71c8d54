"""Methods that delegate to a part of an object."""

from __future__ import annotations

import inspect

import pytest

from gateway.gateway import Gateway
from gateway.runtime.delegation import async_call_of, call_of
from gateway.servers import Servers


class Shelf:
    """A part of `Library`."""

    def put(self, book: str, *, times: int = 1) -> list[str]:
        """Put a book on the shelf."""
        return [book] * times

    async def read(self, book: str) -> str:
        """Read a book."""
        return f"read {book}"


class Library:
    """An object whose methods delegate to its shelf."""

    def __init__(self) -> None:
        self.shelf = Shelf()

    put = call_of("shelf", Shelf.put)
    read = async_call_of("shelf", Shelf.read)


async def test_delegated_method_calls_the_part() -> None:
    library = Library()

    assert ["Emma", "Emma"] == library.put("Emma", times=2)
    assert "read Emma" == await library.read("Emma")


@pytest.mark.parametrize("name", ["put", "read"])
def test_delegated_method_has_signature_and_docstring_of_the_part(name: str) -> None:
    ours, part = getattr(Library, name), getattr(Shelf, name)

    assert inspect.signature(part) == inspect.signature(ours)
    assert inspect.getdoc(part) == inspect.getdoc(ours)
    assert inspect.iscoroutinefunction(part) == inspect.iscoroutinefunction(ours)


@pytest.mark.parametrize(
    ("name", "argument"),
    [
        ("search", "display_limit:"),
        ("invoke", "call_id:"),
        ("add_tool", "function:"),
        ("add_server", "transforms:"),
        ("add_virtual_server", "prompts:"),
    ],
)
def test_help_on_a_gateway_shows_the_arguments(name: str, argument: str) -> None:
    method = getattr(Gateway, name)

    assert argument in (inspect.getdoc(method) or "")
    assert argument.removesuffix(":") in inspect.signature(method).parameters


def test_each_public_method_of_a_gateway_has_a_docstring() -> None:
    methods = inspect.getmembers(Gateway, inspect.isfunction)

    assert [] == [name for name, method in methods if name[0] != "_" and not method.__doc__]
    assert inspect.signature(Servers.add_tool) == inspect.signature(Gateway.add_tool)
