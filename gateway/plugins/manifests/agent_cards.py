"""Conversion between A2A agent cards (protocol 0.3 and 1.0) and entries of kind ``agent``.

Tags and examples of the skills become those of the entry. Other fields of the card (addresses,
capabilities, provider, version, signatures, skills) become its metadata, unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

from pydantic import BaseModel, Field, StringConstraints

from gateway.catalog.entries import NAMESPACE, Entry
from gateway.errors import ConfigError
from gateway.runtime.json_models import Text, read_value
from gateway.runtime.json_schema import as_texts
from gateway.types import Hints, JsonObject

MAX_EXAMPLES = 20
_ENTRY_FIELDS = frozenset({"name", "description"})
_ADDRESSES = ("supportedInterfaces", "url")
"""Fields with the agent's address, in protocol versions 1.0 and 0.3."""


class _Card(BaseModel):
    name: Annotated[Text, StringConstraints(strip_whitespace=True)]
    description: str = ""
    skills: list[dict[str, Any]] = Field(default_factory=list)


def is_card(card: Mapping[str, object]) -> bool:
    """Return whether a JSON object looks like an agent card."""
    return "skills" in card or any(key in card for key in _ADDRESSES)


def read_card(card: Mapping[str, object], *, where: str, namespace: str = NAMESPACE) -> Entry:
    """Return the catalog entry for an agent card.

    Args:
        card: Parsed JSON of a card of version 0.3 (``url``) or 1.0 (``supportedInterfaces``).
        where: Path of the file, for messages.
        namespace: Namespace of the entry.

    Raises:
        ConfigError: If a field is missing or wrong. The message names the field.
    """
    read: _Card = read_value(_Card, card, where=f"{where!r} is not an agent card")
    if not any(card.get(key) for key in _ADDRESSES):
        raise ConfigError(
            f"{where!r} is not an agent card: add 'supportedInterfaces' (A2A 1.0) or 'url' (0.3)"
        )
    return Entry(
        kind="agent",
        name=read.name,
        description=read.description,
        namespace=namespace,
        hints=Hints(
            tags=tuple(dict.fromkeys(_texts(read.skills, "tags"))),
            examples=tuple(dict.fromkeys(_texts(read.skills, "examples")))[:MAX_EXAMPLES],
        ),
        metadata={key: value for key, value in card.items() if key not in _ENTRY_FIELDS},
    )


def _texts(skills: Sequence[Mapping[str, object]], key: str) -> Iterator[str]:
    for skill in skills:
        yield from as_texts(skill.get(key))


def write_card(entry: Entry) -> JsonObject:
    """Return the agent card of *entry*, without its status and scopes."""
    return {"name": entry.name, "description": entry.description, "skills": [], **entry.metadata}
