"""Conversion between ``SKILL.md`` files and entries of kind ``skill``.

Fields of the front matter other than ``name`` and ``description`` become metadata, as texts. The
text after it becomes the metadata field ``instructions``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field

from gateway.catalog.entries import INSTRUCTIONS, NAMESPACE, Entry
from gateway.errors import ConfigError
from gateway.runtime.json_models import Text, read_value
from gateway.types import Hints

_FENCE = "---"
_MAX_DEPTH = 16
# libyaml's loader is ten times as fast, but missing in some wheels.
_LOADER: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)


class _Front(BaseModel):
    """Front matter of a skill. All values are texts."""

    model_config = ConfigDict(extra="allow")

    name: Text
    description: Text
    tags: list[str] = Field(default_factory=list)


def read_skill(text: str, *, where: str, namespace: str = NAMESPACE) -> Entry:
    """Return the entry of a ``SKILL.md`` file.

    Args:
        text: Content of the file.
        where: Path of the file, for messages.
        namespace: Namespace of the entry.

    Raises:
        ConfigError: If the front matter is missing, not valid, or without name and description.
    """
    head, body = _split_front_matter(text, where)
    front: _Front = read_value(_Front, _read_yaml(head, where), where=f"{where!r}: front matter")
    extra = front.model_extra or {}
    if INSTRUCTIONS in extra:
        raise ConfigError(
            f"{where!r}: {INSTRUCTIONS!r} must be below the front matter, not a field in it"
        )
    return Entry(
        kind="skill",
        name=front.name,
        description=front.description,
        namespace=namespace,
        hints=Hints(tags=tuple(front.tags)),
        metadata={**extra, **({INSTRUCTIONS: body} if body else {})},
    )


def _split_front_matter(text: str, where: str) -> tuple[str, str]:
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
    if lines[0].rstrip() != _FENCE or _FENCE not in (
        stripped := [item.rstrip() for item in lines[1:]]
    ):
        raise ConfigError(
            f"{where!r} has no front matter: begin it with '---', 'name: …', 'description: …' and "
            "'---', each on a line of its own"
        )
    end = stripped.index(_FENCE) + 1
    return "\n".join(lines[1:end]), "\n".join(lines[end + 1 :]).strip("\n")


def _read_yaml(head: str, where: str) -> object:
    try:
        if fault := _find_problem(yaml.parse(head, Loader=_LOADER)):
            raise ConfigError(f"{where!r}: its front matter {fault}")
        return yaml.load(head, Loader=_LOADER)  # noqa: S506  (it makes texts alone)
    except (yaml.YAMLError, UnicodeEncodeError) as error:
        reason = getattr(error, "problem", None) or str(error).partition("\n")[0]
        raise ConfigError(
            f"{where!r}: its front matter cannot be read: {reason}; quote the value"
        ) from error


def _find_problem(events: Iterable[yaml.Event]) -> str:
    """Return why the YAML could become huge or slow; "" if it is harmless."""
    depth = 0
    for event in events:
        # Aliases of an anchor have this attribute too.
        if getattr(event, "anchor", None) is not None:
            return "uses '&' or '*': write the value out"
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > _MAX_DEPTH:
            return f"is nested deeper than {_MAX_DEPTH}: flatten it"
    return ""


def front_matter(entry: Entry) -> dict[str, object]:
    """Return the front matter of *entry*."""
    tags = {"tags": list(entry.hints.tags)} if entry.hints.tags else {}
    extra = {key: value for key, value in entry.metadata.items() if key != INSTRUCTIONS}
    front = {"name": entry.name, "description": entry.description, **tags, **extra}
    return {key: _plain(value) for key, value in front.items()}


def write_skill(entry: Entry) -> str:
    """Return the ``SKILL.md`` file of *entry*."""
    front = front_matter(entry)
    head = yaml.safe_dump(front, allow_unicode=True, sort_keys=False, width=10_000)
    body = entry.metadata.get(INSTRUCTIONS, "")
    return f"{_FENCE}\n{head}{_FENCE}\n" + (f"\n{body}\n" if body else "")


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value
