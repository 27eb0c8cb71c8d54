"""A gateway with the packaged model."""

from __future__ import annotations

from gateway.types import ToolDefinition
from tests.conftest import OpenGateway
from tests.fakes import names


async def test_the_embedded_model_finds_tools_in_other_languages(
    open_gateway: OpenGateway, catalog: tuple[ToolDefinition, ...]
) -> None:
    """The real model, once, end to end: no key, no network, no English."""
    gateway = open_gateway(catalog, strategy="auto", embedder="local")

    for query, expected in (
        ("Wie wird das Wetter in Berlin?", "get_weather"),
        ("envoyer un courriel", "send_email"),
        ("перевести текст на английский", "translate_text"),
    ):
        found = await gateway.search(query)

        assert ("hybrid", expected) == (found.mode, names(found)[0])
