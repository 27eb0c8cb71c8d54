"""A gateway with three functions, and scripted models that are closed after the test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gateway import Gateway, Hints
from gateway.testing import Policy, ScriptedModel, Turn, script
from tests.apps.adapters.conformance import Cast
from tests.apps.adapters.frameworks import elsewhere
from tests.conftest import OpenGateway

collect_ignore = elsewhere()


def find_invoice(number: str, year: int = 2026) -> dict[str, object]:
    """Look up one invoice of a customer.

    Args:
        number: The invoice number.
        year: The year it was written in.
    """
    return {"number": number, "year": year, "paid": False}


def delete_invoice(number: str) -> str:
    """Delete one invoice of a customer for ever."""
    return f"{number} is gone"


def play_music(song: str) -> str:
    """Play a song on the speakers."""
    return f"playing {song}"


@pytest.fixture
def gateway(open_gateway: OpenGateway) -> Gateway:
    """A gateway with this module's functions as tools."""
    gateway = open_gateway()
    gateway.add_tool(find_invoice)
    gateway.add_tool(delete_invoice, hints=Hints(destructive=True))
    gateway.add_tool(play_music)
    return gateway


@pytest.fixture
def cast() -> Iterator[Cast]:
    """Start scripted models that replay turns."""
    started: list[ScriptedModel] = []

    def start(*turns: Turn | Policy) -> ScriptedModel:
        model = ScriptedModel(script(*turns))
        model.start()
        started.append(model)
        return model

    yield start
    for model in started:
        model.close()
