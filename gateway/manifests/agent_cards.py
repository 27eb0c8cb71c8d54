"""Agent cards (A2A protocol, versions 0.3 and 1.0) <-> entries of kind ``agent``. Pure.

An agent is one entry: its skills are part of what it is found by, not entries of their own. What
else a card says (addresses, capabilities, provider, version, signatures) is its metadata, as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from gateway.catalog.entries import NAMESPACE, Entry
from gateway.errors import ConfigError
from gateway.types import Hints, JsonObject

MAX_EXAMPLES = 20
_OWN = frozenset({"name", "description"})
_ADDRESSES = ("supportedInterfaces", "url")
"""Where an agent is reached: by version 1.0, and by 0.3."""


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
    name, description = card.get("name"), card.get("description", "")
    if not isinstance(name, str) or not name.strip():
        raise ConfigError(f"{where!r} is no agent card: it needs a 'name' that is not empty")
    if not isinstance(description, str):
        raise ConfigError(f"{where!r}: 'description' must be a text")
    if not any(card.get(key) for key in _ADDRESSES):
        raise ConfigError(
            f"{where!r} is no agent card: it needs 'supportedInterfaces' (A2A 1.0) or 'url' (0.3)"
        )
    skills = card.get("skills", [])
    if not isinstance(skills, list) or not all(isinstance(skill, Mapping) for skill in skills):
        raise ConfigError(f"{where!r}: 'skills' must be a list of objects")
    return Entry(
        kind="agent",
        name=name.strip(),
        description=description,
        namespace=namespace,
        hints=Hints(
            tags=tuple(dict.fromkeys(_texts(skills, "tags"))),
            examples=tuple(dict.fromkeys(_texts(skills, "examples")))[:MAX_EXAMPLES],
        ),
        metadata={key: value for key, value in card.items() if key not in _OWN},
    )


def _texts(skills: Sequence[Mapping[str, object]], key: str) -> Iterator[str]:
    for skill in skills:
        description = skill.get(key)
        if isinstance(description, list):
            yield from (skill for skill in description if isinstance(skill, str))


def write_card(entry: Entry) -> JsonObject:
    """Write an entry as the card that it was, or could be; its status and scopes are not told."""
    return {"name": entry.name, "description": entry.description, "skills": [], **entry.metadata}
