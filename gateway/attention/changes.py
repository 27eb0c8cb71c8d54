from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import unified_diff

from gateway.catalog.approvals import COMMAND_LINE_PIN
from gateway.catalog.identity import similar_names
from gateway.runtime.text import digest
from gateway.sources.listing_store import ListingStore, fields_of
from gateway.types import ToolDefinition

NAME = "name:"
"""Prefix of the label of a changed exposed name. Server names cannot contain a colon."""
_LINE_CHARS = 160
_PIECE = re.compile(rf".{{1,{_LINE_CHARS}}}?(?:[.;!?] |\\n|$)|.{{1,{_LINE_CHARS}}}")
"""Pattern of the pieces of long lines in a comparison: sentences, if possible."""
_MAX_LINES = 2000
"""Maximum number of lines compared on each side; a digest stands for the rest."""
_CONTEXT_LINES = 2
_ACCEPTED = "accepted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """An unapproved change of a definition, command line or name."""

    label: str
    """Name for display and approval: ``server`` for its command line, ``server/tool``, or
    ``name:NAME``."""
    server: str
    """Server of the changed item; for a name, the server of the tool that would get it."""
    owner: str
    item: str
    """Key of the changed pin: the key of a definition, `COMMAND_LINE_PIN`, or an exposed name."""
    before: str
    after: str
    """Values of the pin: *before* is the approved one, *after* was last seen. They are digests, or
    tool ids if an exposed name changed."""

    @property
    def is_name(self) -> bool:
        """True if an exposed name would move to another tool."""
        return self.label.startswith(NAME)


def change_label(server: str, item: str) -> str:
    """Return the label of a change: *server* for its command line, else ``server/item``."""
    return server if item == COMMAND_LINE_PIN else f"{server}/{item}"


def find_changes(store: ListingStore, owners: Mapping[str, str], names: str) -> tuple[Change, ...]:
    """Return the unapproved changes, in the order of *owners*, changed names last.

    Args:
        store: Store of the pins.
        owners: Owner of the pins of each server, keyed by server.
        names: Owner of the pins of exposed names; "" if these are not stored.

    Raises:
        StoreError: If the store cannot be read.
    """
    stored = store.read(owners)
    changes = [
        Change(
            label=change_label(server, item),
            server=server,
            owner=owner,
            item=item,
            before=before,
            after=after,
        )
        for server, owner in owners.items()
        for item, (before, after) in sorted(stored[server].pins.items())
        if before != after
    ]
    for name, (holder, wants) in sorted(store.pins(names).items()) if names else ():
        server = wants.partition("/")[0]
        # A tool keeps its exposed name as long as its server is configured.
        if server in owners and holder.partition("/")[0] not in owners:
            label = f"{NAME}{name}"
            change = Change(
                label=label, server=server, owner=names, item=name, before=holder, after=wants
            )
            changes.append(change)
    return tuple(changes)


def find_similar(
    own_names: Mapping[str, str], store: ListingStore, names: str
) -> tuple[tuple[str, ...], ...]:
    """Return the tool ids of each group of similar names that a person has not accepted.

    Args:
        own_names: See `similar_names`.
        store: Store of the accepted groups.
        names: Owner of accepted groups; "" if they are not stored.

    Raises:
        StoreError: If the store cannot be read.
    """
    groups = similar_names(own_names)
    accepted = store.pins(_similar_owner(names)) if names and groups else {}
    return tuple(keys for keys in groups if ", ".join(keys) not in accepted)


def accept_similar(group: str, store: ListingStore, names: str) -> None:
    """Record that a person accepted a group of tools with similar names.

    *group* has the tool ids, separated by ", ". *names* is the owner of accepted groups.

    Raises:
        StoreError: If the store cannot be written.
    """
    store.bind(_similar_owner(names), {group: _ACCEPTED})


def _similar_owner(names: str) -> str:
    return f"similar {names}"


def difference_of(
    change: Change, definition: Callable[[str], ToolDefinition | None]
) -> Mapping[str, object]:
    """Return the fields that differ between the approved and the current definition.

    *definition* returns the definition with a digest, if it is stored.

    Returns:
        The values of the differing fields, keyed by ``before`` and ``after``; or a ``note`` with
        the reason why they are unknown.
    """
    if change.is_name:
        return {"before": {"tool": change.before}, "after": {"tool": change.after}}
    if change.item == COMMAND_LINE_PIN:
        return {"note": "the command line or URL changed; the configuration has the current one"}
    sides = [
        {}
        if version is None
        else {key: value for key, value in fields_of(version).items() if value}
        for version in map(definition, (change.before, change.after))
    ]
    before, after = (
        {key: value for key, value in side.items() if value != other.get(key)}
        for side, other in (sides, sides[::-1])
    )
    if before or after:
        return {"before": before, "after": after}
    note = "the difference is in fields that are not shown, or the old definition is not stored"
    return {"note": note}


def difference_lines(difference: Mapping[str, object]) -> tuple[str, ...]:
    """Return the lines of *difference*, as in a patch: each begins with ``-``, ``+`` or a space.

    Long lines are broken, and changes have two lines of context. A note has no lines.
    """
    if "note" in difference:
        return ()
    before, after = (_json_lines(difference[side]) for side in ("before", "after"))
    lines = unified_diff(before, after, n=_CONTEXT_LINES, lineterm="")
    return tuple(f"{line[:1]} {line[1:]}" for line in [*lines][2:] if not line.startswith("@@"))


def _json_lines(value: object) -> list[str]:
    lines = [
        piece
        for line in json.dumps(value, ensure_ascii=False, indent=2).split("\n")
        for piece in (_PIECE.findall(line) if len(line) > _LINE_CHARS else (line,))
    ]
    if omitted := lines[_MAX_LINES:]:
        # A change of an omitted line changes the digest.
        lines[_MAX_LINES:] = [f"… {len(omitted)} more lines of digest {digest(repr(omitted))[:16]}"]
    return lines
