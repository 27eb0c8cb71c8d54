"""Filters for the entities that a caller may find, and names of MCP registries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from gateway.catalog.kinds import KINDS, REGISTRY_NAMES
from gateway.index.eligibility import passes_all
from gateway.index.snapshot import Snapshot
from gateway.serve.api.models import SearchMode, Visibility
from gateway.serve.api.problems import RefusedError
from gateway.types import Caller, Entity, Filters, RankingMode, Status
from gateway.types.entities import DEFAULT_STATUSES

REGISTRY_KINDS: Mapping[str, str] = {name: kind for kind, name in REGISTRY_NAMES.items()}
"""Kinds of the gateway, keyed by their different name in MCP registries."""
SEARCH_MODES: Mapping[RankingMode, SearchMode] = {
    "hybrid": "hybrid",
    "vector": "vector",
    "lexical": "lexical-only",
    "graph": "graph",
    "browse": "browse",
    "empty": "empty",
}
"""Search modes of MCP registries, keyed by the gateway's ranking mode."""
EVERYTHING = Visibility(include_draft=True, include_deprecated=True, include_disabled=True)
_ACTIVE = Visibility()
_ON_REQUEST = frozenset({"prompt", "resource"})
"""Kinds that a search returns only if the request names them."""


def _kinds(snapshot: Snapshot) -> frozenset[str]:
    traits = snapshot.eligibility.by_trait
    return frozenset({*KINDS, *(str(value) for trait, value in traits if trait == "kind")})


def request_filters(
    caller: Caller,
    snapshot: Snapshot,
    kinds: frozenset[str] | None = None,
    tags: Iterable[str] = (),
    visibility: Visibility = _ACTIVE,
) -> Filters:
    """Return filters that select the entities that *caller* may find.

    None selects all *kinds*. An entity must have all *tags*. *visibility* can include draft,
    deprecated and disabled entities.
    """
    statuses: dict[Status, bool] = {
        **dict.fromkeys(DEFAULT_STATUSES, True),
        "draft": visibility.include_draft,
        "deprecated": visibility.include_deprecated,
    }
    filters = Filters(
        kinds=_kinds(snapshot) if kinds is None else kinds,
        statuses=frozenset(status for status, is_shown in statuses.items() if is_shown),
        tags=frozenset(tags),
        include_disabled=visibility.include_disabled,
        include_described=True,
    )
    return caller.filters(filters)


def resolve_kinds(
    caller: Caller,
    snapshot: Snapshot,
    names: Sequence[str] | None,
    visibility: Visibility = _ACTIVE,
) -> frozenset[str]:
    """Return the gateway's kinds for *names*. None is all kinds but prompts and resources.

    Raises:
        RefusedError: 404 for an unknown kind.
    """
    positions = np.flatnonzero(
        snapshot.mask(request_filters(caller, snapshot, visibility=visibility))
    )
    existing = frozenset({*KINDS, *snapshot.eligibility.kinds(positions)})
    if names is None:
        return existing - _ON_REQUEST
    kinds = frozenset(REGISTRY_KINDS.get(name, name) for name in names)
    if unknown := sorted(kinds - existing):
        detail = f"unknown kind {unknown[0]!r}; kinds are {', '.join(sorted(existing))}"
        raise RefusedError(404, "unknown_kind", detail)
    return kinds


def visible(snapshot: Snapshot, ids: Iterable[str], filters: Filters) -> dict[str, Entity]:
    """Return the entities among *ids* that pass *filters* in *snapshot*, keyed by id."""
    mask, by_id = snapshot.mask(filters), snapshot.eligibility.by_id
    return {key: snapshot.entities[by_id[key]] for key in ids if key in by_id and mask[by_id[key]]}


def sizes_of(snapshot: Snapshot, caller: Caller) -> dict[str, Any]:
    """Return the sizes of the index, counting entities of any status that *caller* may see."""
    mask = snapshot.mask(request_filters(caller, snapshot, visibility=EVERYTHING))
    vectors, graph = snapshot.vectors, snapshot.graph
    if graph and not passes_all(mask):
        graph = graph.visible(mask)
    return {
        "entities": int(mask.sum()),
        "by_kind": Counter(snapshot.eligibility.kinds(np.flatnonzero(mask))),
        "vectors": int(vectors.has(np.flatnonzero(mask)).sum()) if vectors else 0,
        "graph_nodes": len(graph.index.kinds) if graph else 0,
        "graph_edges": graph.edge_count if graph else 0,
    }
