"""What is not as it was approved: definitions, command lines and names, and how they differ."""

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
"""Stands before an exposed name; no server is called so."""
_LINE_CHARS = 160
_PIECE = re.compile(rf".{{1,{_LINE_CHARS}}}?(?:[.;!?] |\\n|$)|.{{1,{_LINE_CHARS}}}")
"""A longer line is compared sentence by sentence."""
_MAX_LINES = 2000
"""So many lines of a definition are compared; of the rest only the digest."""
_CONTEXT_LINES = 2
_ACCEPTED = "accepted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What is not as it was approved."""

    label: str
    """How it is shown and approved: the server for its command line, ``server/tool``, or
    ``name:NAME``."""
    server: str
    """The server that has it now; its name approves this too."""
    owner: str
    item: str
    """Under which owner and name it is pinned."""
    before: str
    after: str
    """What was approved, and what was seen last: digests, or the ids of tools."""

    @property
    def is_name(self) -> bool:
        """Whether an exposed name changes hands."""
        return self.label.startswith(NAME)


def change_label(server: str, item: str) -> str:
    """Return how a change is shown: the server for its command line, else ``server/tool``."""
    return server if item == COMMAND_LINE_PIN else f"{server}/{item}"


def find_changes(store: ListingStore, owners: Mapping[str, str], names: str) -> tuple[Change, ...]:
    """Return what is not as it was approved, in the order of *owners*; names come last.

    Args:
        store: Where it is pinned.
        owners: The owner of the pins of each server, by the server's name.
        names: The owner of the exposed names; empty if none are stored.

    Raises:
        StoreError: The store cannot be read.
    """
    stored = store.read(owners)
    found = [
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
        # While its server is configured a tool keeps its name.
        if server in owners and holder.partition("/")[0] not in owners:
            label = f"{NAME}{name}"
            change = Change(
                label=label, server=server, owner=names, item=name, before=holder, after=wants
            )
            found.append(change)
    return tuple(found)


def find_similar(
    own_names: Mapping[str, str], store: ListingStore, names: str
) -> tuple[tuple[str, ...], ...]:
    """Return groups of tools whose names hardly differ, without those that a person accepted.

    Args:
        own_names: What its server calls each tool, by id; see `similar_names`.
        store: Where it is kept what was accepted.
        names: The owner of the exposed names; empty if nothing is kept.

    Raises:
        StoreError: The store cannot be read.
    """
    groups = similar_names(own_names)
    accepted = store.pins(_similar_owner(names)) if names and groups else {}
    return tuple(keys for keys in groups if ", ".join(keys) not in accepted)


def accept_similar(group: str, store: ListingStore, names: str) -> None:
    """Keep that a person accepted a group of similar names, ids with commas between them.

    Raises:
        StoreError: It cannot be kept.
    """
    store.bind(_similar_owner(names), {group: _ACCEPTED})


def _similar_owner(names: str) -> str:
    return f"similar {names}"


def difference_of(
    change: Change, definition: Callable[[str], ToolDefinition | None]
) -> Mapping[str, object]:
    """Return what was approved and what there is now, as far as that differs and is known.

    Args:
        change: What changed.
        definition: Returns the definition of a digest; None if it is not known any more.

    Returns:
        The fields that differ as ``before`` and ``after``, or a ``note`` that says why there are
        none.
    """
    if change.is_name:
        return {"before": {"tool": change.before}, "after": {"tool": change.after}}
    if change.item == COMMAND_LINE_PIN:
        return {"note": "what would run, or be asked, is what stands in the configuration now"}
    sides = [
        {} if found is None else {key: value for key, value in fields_of(found).items() if value}
        for found in map(definition, (change.before, change.after))
    ]
    before, after = (
        {key: value for key, value in side.items() if value != other.get(key)}
        for side, other in (sides, sides[::-1])
    )
    if before or after:
        return {"before": before, "after": after}
    return {"note": "it differs only in what is never shown, or the old one is not known any more"}


def difference_lines(difference: Mapping[str, object]) -> tuple[str, ...]:
    """Return a difference as lines that begin with ``-``, ``+`` or a blank, as in a patch.

    Long lines are broken, and of an unchanged part two lines are left on either side. Empty for a
    difference that is a note.
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
    if rest := lines[_MAX_LINES:]:
        # A change there must not be hidden.
        lines[_MAX_LINES:] = [f"… {len(rest)} more lines of digest {digest(repr(rest))[:16]}"]
    return lines
