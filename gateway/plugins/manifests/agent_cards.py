"""Agent cards (A2A protocol, versions 0.3 and 1.0) <-> entries of kind ``agent``. Pure.

An agent is one entry: its skills are part of what it is found by, not entries of their own. What
else a card says (addresses, capabilities, provider, version, signatures) is its metadata, as it is.
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
_OWN = frozenset({"name", "description"})
_ADDRESSES = ("supportedInterfaces", "url")
"""Where an agent is reached: by version 1.0, and by 0.3."""


class _Card(BaseModel):
    name: Annotated[Text, StringConstraints(strip_whitespace=True)]
    description: str = ""
    skills: list[dict[str, Any]] = Field(default_factory=list)


def is_card(card: Mapping[str, object]) -> bool:
    """Return whether *raw* means to be an agent card."""
    return "skills" in card or any(key in card for key in _ADDRESSES)


def read_card(card: Mapping[str, object], *, where: str, namespace: str = NAMESPACE) -> Entry:
    """Read the parsed JSON of an agent card.

    Args:
        card: Of version 0.3 (``url``) or 1.0 (``supportedInterfaces``).
        where: The file, for messages.
        namespace: Whose the entry is.

    Raises:
        ConfigError: If it is none; it says what is missing or wrong.
    """
    read: _Card = read_value(_Card, card, where=f"{where!r} is no agent card")
    if not any(card.get(key) for key in _ADDRESSES):
        raise ConfigError(
            f"{where!r} is no agent card: it needs 'supportedInterfaces' (A2A 1.0) or 'url' (0.3)"
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
        metadata={key: value for key, value in card.items() if key not in _OWN},
    )


def _texts(skills: Sequence[Mapping[str, object]], key: str) -> Iterator[str]:
    for skill in skills:
        yield from as_texts(skill.get(key))


def write_card(entry: Entry) -> JsonObject:
    """Write an entry as the card that it was, or could be; its status and scopes are not told."""
    return {"name": entry.name, "description": entry.description, "skills": [], **entry.metadata}
