"""The keys of the front matter: which there are, whose the others are, and what a slip means."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from types import MappingProxyType

from rapidfuzz import process
from rapidfuzz.distance import OSA

from graphs.facts.vocabulary import is_iri
from graphs.parameters import KEY_SIMILARITY, SHOWN_KEY_CHARS

KEYS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "id": ("id",),
        "url": ("canonical_url",),
        "title": ("title",),
        "summary": ("summary", "description"),
        "published": ("date_published",),
        "modified": ("date_modified",),
        "source_project": ("source_project",),
        "language": ("language",),
        "prefixes": ("rdf_prefixes",),
        "types": ("types", "rdf_types", "entry_type"),
        "tags": ("tags",),
        "keywords": ("keywords",),
        "aliases": ("aliases",),
        "authors": ("authors", "author"),
        "about": ("about",),
        "hints": ("entity_hints",),
        "groups": ("graph_groups",),
        "related": ("graph_related",),
        "next_steps": ("graph_next_steps",),
        "requires": ("graph_requires", "requires"),
        "consumes": ("inputs", "consumes"),
        "produces": ("outputs", "produces"),
        "entities": ("graph_entities",),
        "edges": ("graph_edges",),
        "forbidden": ("graph_forbid",),
        "texts": ("rdf_properties",),
    }
)
"""The keys of each field; the first is the one we write."""
KNOWN_KEYS = frozenset(key for keys in KEYS.values() for key in keys)
_OWN = ("x-", "x_")
"""What a key of the author's own begins with."""
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")


def snake(key: str) -> str:
    """Write a camelCase key in snake_case."""
    return _HUMP.sub("_", key).lower()


def is_own(key: str, namespaces: Collection[str]) -> bool:
    """Return whether the author marked *key* as their own: ``x_``, a known prefix, or an IRI."""
    prefix, colon, _ = key.partition(":")
    return snake(key).startswith(_OWN) or (bool(colon) and (prefix in namespaces or is_iri(key)))


def meant(key: str) -> str:
    """Quote an unknown key, and name the one of ours that it is likely to be a slip of."""
    shown = key if len(key) <= SHOWN_KEY_CHARS else f"{key[:SHOWN_KEY_CHARS]}…"
    near = _near(snake(key))
    return f"{shown!r}: meant is {near!r}" if near else repr(shown)


def _near(key: str) -> str:
    for prefix in ("graph_", "rdf_"):
        if prefix + key in KNOWN_KEYS:
            return prefix + key
    near = process.extractOne(
        key, sorted(KNOWN_KEYS), scorer=OSA.normalized_similarity, score_cutoff=KEY_SIMILARITY
    )
    return near[0] if near else ""
