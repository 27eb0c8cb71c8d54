"""Agent cards of both protocol versions."""

from __future__ import annotations

import pytest

from gateway.errors import ConfigError
from gateway.plugins.manifests import MAX_EXAMPLES, read_card, write_card
from gateway.types import JsonObject

SKILLS = [
    {
        "id": "route",
        "name": "Route planning",
        "description": "Finds the fastest way.",
        "tags": ["maps", "travel"],
        "examples": ["from Kyiv to Lviv by train"],
    },
    {"id": "map", "name": "Maps", "description": "Draws a map.", "tags": ["maps"]},
]
OLD: JsonObject = {
    "protocolVersion": "0.3.0",
    "name": "Route planner",
    "description": "Plans routes.",
    "url": "https://agents.example/route",
    "preferredTransport": "JSONRPC",
    "provider": {"organization": "Acme", "url": "https://acme.example"},
    "version": "1.2.0",
    "capabilities": {"streaming": True},
    "defaultInputModes": ["text/plain"],
    "defaultOutputModes": ["text/plain"],
    "skills": SKILLS,
}
NEW: JsonObject = {
    "name": "Route planner",
    "description": "Plans routes.",
    "supportedInterfaces": [
        {"url": "https://agents.example/route", "protocolBinding": "GRPC", "protocolVersion": "1.0"}
    ],
    "version": "1.2.0",
    "capabilities": {"extendedAgentCard": True},
    "skills": SKILLS,
}


@pytest.mark.parametrize("card", [OLD, NEW], ids=["0.3", "1.0"])
def test_agent_card_becomes_one_entry_and_is_written_back_unchanged(card: JsonObject) -> None:
    """The skills become tags and examples of the entry. Unknown fields are preserved."""
    entry = read_card(card, where="card.json", namespace="acme")

    assert "agent:acme/Route planner" == entry.id
    assert ("maps", "travel") == entry.hints.tags
    assert ("from Kyiv to Lviv by train",) == entry.hints.examples
    assert card == write_card(entry)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": " "}, "name must be a text that is not empty"),
        ({"description": 3}, "description must be a text"),
        ({"url": ""}, "'supportedInterfaces'"),
        ({"skills": {}}, "skills must be a list"),
        ({"skills": ["a"]}, r"skills\[0\] must be an object"),
    ],
)
def test_error_of_an_invalid_card_names_the_field_and_the_file(
    change: JsonObject, message: str
) -> None:
    with pytest.raises(ConfigError, match=f"'card.json'.*{message}"):
        read_card({**OLD, **change}, where="card.json")


def test_invalid_fields_of_a_skill_are_ignored_and_examples_are_limited() -> None:
    """Cards are untrusted and may contain anything."""
    many = [f"example {number}" for number in range(50)]
    skills = [{"tags": "maps", "examples": [3, *many]}, {}]

    entry = read_card({**OLD, "skills": skills}, where="card.json")

    assert () == entry.hints.tags
    assert MAX_EXAMPLES == len(entry.hints.examples)
    assert skills == entry.metadata["skills"]
