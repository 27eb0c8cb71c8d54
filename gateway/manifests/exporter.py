"""Entries -> the files of a folder: agent cards, skills, and a bundle of the rest. Pure.

A card and a ``SKILL.md`` say less than an entry does: what they cannot say (a status, scopes, other
hints) goes into the bundle, with the whole entry, so that nothing is lost.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from gateway.catalog.entries import Entry
from gateway.errors import ConfigError
from gateway.manifests.agent_cards import read_card, write_card
from gateway.manifests.bundles import write_bundle
from gateway.manifests.importer import SKILL
from gateway.manifests.skills import read_skill, write_skill

_FOREIGN = re.compile(r"[^a-z0-9]+")
_SLUG_CHARS = 64


def files_of(entries: Sequence[Entry], folder: Path) -> Mapping[Path, str]:
    """Return the text of each file that *folder* would hold.

    What `read_manifests` makes of it, with the namespace of the entries, are the same entries.
    """
    files: dict[Path, str] = {}
    rest = []
    for entry in entries:
        stem = _slug(entry)
        if _as_card(entry):
            text = json.dumps(write_card(entry), ensure_ascii=False, indent=2)
            files[folder / f"{stem}.agent.json"] = f"{text}\n"
        elif _as_skill(entry):
            files[folder / stem / SKILL] = write_skill(entry)
        else:
            rest.append(entry)
    if rest:
        files[folder / "entries.json"] = write_bundle(rest)
    return files


def _as_card(entry: Entry) -> bool:
    if entry.kind != "agent":
        return False
    try:
        return entry == read_card(write_card(entry), where="", namespace=entry.namespace)
    except ConfigError:
        return False


def _as_skill(entry: Entry) -> bool:
    if entry.kind != "skill":
        return False
    try:
        return entry == read_skill(write_skill(entry), where="", namespace=entry.namespace)
    except ConfigError:
        return False


def _slug(entry: Entry) -> str:
    plain = _FOREIGN.sub("-", entry.name.casefold()).strip("-")[:_SLUG_CHARS]
    if plain == entry.name:
        return plain
    digest = hashlib.sha256(entry.id.encode()).hexdigest()[:8]
    return f"{plain}-{digest}" if plain else digest
