"""``SKILL.md`` <-> entries of kind ``skill``. Pure.

The front matter's ``name`` and ``description`` are the entry's; what else it says is metadata, each
value as text, and the body stands there under ``instructions``.
"""

from __future__ import annotations

from collections.abc import Mapping

import yaml

from gateway.catalog.entries import NAMESPACE, Entry
from gateway.errors import ConfigError
from gateway.types import Hints

INSTRUCTIONS = "instructions"
"""Under which name the metadata holds the body."""
_FENCE = "---"
_OWN = frozenset({"name", "description", "tags"})


def read_skill(text: str, *, where: str, namespace: str = NAMESPACE) -> Entry:
    """Read a ``SKILL.md``.

    Args:
        text: All of it.
        where: The file, for messages.
        namespace: Whose the entry is.

    Raises:
        ConfigError: If it has no front matter with a name and a description, or one that cannot
            be read; it says what to do.
    """
    head, body = _parts(text, where)
    front = _front(head, where)
    name, description = front.get("name"), front.get("description")
    if not isinstance(name, str) or not isinstance(description, str) or not name or not description:
        raise ConfigError(f"{where!r}: its front matter needs 'name' and 'description', as texts")
    tags = front.get("tags", [])
    if not isinstance(tags, list) or not all(isinstance(item, str) for item in tags):
        raise ConfigError(f"{where!r}: 'tags' must be a list of texts")
    rest = {key: value for key, value in front.items() if key not in _OWN}
    if INSTRUCTIONS in rest:
        raise ConfigError(f"{where!r}: {INSTRUCTIONS!r} stands below the front matter, not in it")
    return Entry(
        kind="skill",
        name=name,
        description=description,
        namespace=namespace,
        hints=Hints(tags=tuple(tags)),
        metadata={**rest, **({INSTRUCTIONS: body} if body else {})},
    )


def _parts(text: str, where: str) -> tuple[str, str]:
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
    if lines[0].rstrip() != _FENCE or _FENCE not in (rest := [item.rstrip() for item in lines[1:]]):
        raise ConfigError(
            f"{where!r} has no front matter: begin it with '---', 'name: …', 'description: …' and "
            "'---', each on a line of its own"
        )
    end = rest.index(_FENCE) + 1
    return "\n".join(lines[1:end]), "\n".join(lines[end + 1 :]).strip("\n")


def _front(head: str, where: str) -> Mapping[str, object]:
    try:
        # An alias may stand for something huge, and no skill needs one.
        if any(isinstance(item, yaml.AliasToken | yaml.AnchorToken) for item in yaml.scan(head)):
            raise ConfigError(f"{where!r}: its front matter uses '&' or '*': write the value out")
        front = yaml.load(head, Loader=yaml.BaseLoader)  # noqa: S506  (it makes texts alone)
    except (yaml.YAMLError, RecursionError) as error:
        lines = str(error).splitlines()
        raise ConfigError(
            f"{where!r}: its front matter cannot be read: {lines[0] if lines else 'too deep'}; "
            "quote the value"
        ) from error
    if not isinstance(front, dict) or not all(isinstance(key, str) for key in front):
        raise ConfigError(f"{where!r}: its front matter must hold lines such as 'name: value'")
    return front


def write_skill(entry: Entry) -> str:
    """Write an entry as the ``SKILL.md`` that it was, or could be."""
    front: dict[str, object] = {"name": entry.name, "description": entry.description}
    if entry.hints.tags:
        front["tags"] = list(entry.hints.tags)
    front |= {key: value for key, value in entry.metadata.items() if key != INSTRUCTIONS}
    head = yaml.safe_dump(_plain(front), allow_unicode=True, sort_keys=False, width=10_000)
    body = entry.metadata.get(INSTRUCTIONS, "")
    return f"{_FENCE}\n{head}{_FENCE}\n" + (f"\n{body}\n" if body else "")


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value
