"""Gateway with the packaged model."""

from __future__ import annotations

from gateway.types import ToolDefinition
from tests.conftest import OpenGateway
from tests.fakes import names


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
