"""Tool names in a query -> the entities that have them. Pure."""

from __future__ import annotations

import re

from gateway.index.eligibility import Mask
from gateway.index.snapshot import Snapshot
from graphs.lexical.analysis import fold

_IDENTIFIER = re.compile(r"[^\s\"'`(),;:!?]+")
_NOT_PLAIN = re.compile(r"[_\-./]|[a-z0-9][A-Z]")


def find_named(snapshot: Snapshot, query: str, mask: Mask) -> list[int]:
    """Return the positions of the eligible entities that *query* calls by name, in its order.

    The whole query may be a name, whatever stands for its spaces. Within a longer query only words
    that look like identifiers count, so that ``run`` in a sentence names nothing.
    """
    names = [query]
    if _NOT_PLAIN.search(query):
        bare = (word.strip(".-/") for word in _IDENTIFIER.findall(query))
        names += (word for word in bare if _NOT_PLAIN.search(word))
    positions = [at for name in names for at in snapshot.by_name.get(fold(name), ())]
    return [position for position in dict.fromkeys(positions) if mask[position]]
