from __future__ import annotations

from collections.abc import Callable

import pytest

from gateway.gateway import Gateway
from gateway.plugins.quality import EvalReport, EvalRequest, evaluate, freeze
from gateway.types import Filters, ToolDefinition
from tests.conftest import OpenGateway

Evaluate = Callable[..., EvalReport]


@pytest.fixture
def gateway(open_gateway: OpenGateway, catalog: tuple[ToolDefinition, ...]) -> Gateway:
    """A gateway that ranks by words and graph, without a model."""
    return open_gateway(catalog)


@pytest.fixture
def run(gateway: Gateway) -> Evaluate:
    """Evaluate requests, given as texts with the names of their tools."""

    def evaluated(
        texts: dict[str, str], *further_requests: EvalRequest, on: Gateway = gateway
    ) -> EvalReport:
        async def work() -> EvalReport:
            requests = [
                EvalRequest(text=text, wanted=_wanted(names)) for text, names in texts.items()
            ]
            frozen = freeze([*requests, *further_requests], await on.snapshot(), Filters())
            return await evaluate(on, frozen)

        return on.bridge.call(work)

    return evaluated


def _wanted(names: str) -> tuple[tuple[str, ...], ...]:
    return tuple((name,) for name in names.split())
