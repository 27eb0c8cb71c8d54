"""Gateway with the packaged model."""

from __future__ import annotations

from gateway.plugins.local import LocalEmbedder
from gateway.types import ToolDefinition
from tests.conftest import OpenGateway
from tests.fakes import names


async def test_default_strategy_is_auto_if_the_extra_is_installed(
    open_gateway: OpenGateway, catalog: tuple[ToolDefinition, ...]
) -> None:
    """The model is neither loaded nor converted before the first search."""
    gateway = open_gateway(catalog, strategy=None)

    assert isinstance(gateway.embedder, LocalEmbedder)
    is_preparing = gateway.embedder.preparing
    result = await gateway.search("envoyer un courriel")

    assert ("auto", True) == (gateway.strategy, is_preparing)
    assert "reason='extra local installed'" in repr(gateway)
    assert ("hybrid", "send_email") == (result.mode, names(result)[0])


async def test_gateway_finds_tools_by_queries_in_other_languages(
    open_gateway: OpenGateway, catalog: tuple[ToolDefinition, ...]
) -> None:
    """The test uses the real model."""
    gateway = open_gateway(catalog, strategy="auto", embedder="local")

    for query, expected in (
        ("Wie wird das Wetter in Berlin?", "get_weather"),
        ("envoyer un courriel", "send_email"),
        ("перевести текст на английский", "translate_text"),
    ):
        result = await gateway.search(query)

        assert ("hybrid", expected) == (result.mode, names(result)[0])
