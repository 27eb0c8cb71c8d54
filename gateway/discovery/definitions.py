"""Tool definitions of one catalog, written once and cached until the tool changes."""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal

from gateway.discovery.meta_tools import (
    MetaNames,
    adviser_tools,
    call_tool,
    catalog_digest,
    meta_tools,
    native_tool,
)
from gateway.discovery.proxies import proxy
from gateway.discovery.token_count import json_tokens
from gateway.discovery.wire_formats import WireFormat, to_wire
from gateway.index.snapshot import Snapshot
from gateway.options import DiscoveryOptions
from gateway.types import Entity, Filters

Projection = Literal["proxy", "stable", "native", "all"]
"""How found tools reach the model in one request; see `gateway.discovery.tool_list`."""
_MAX_CACHED = 64
"""Spellings of the meta-tools that are cached."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """One or several tools as they go out."""

    tools: tuple[Mapping[str, object], ...]
    tokens: int
    """Estimated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchableTools:
    """The tools of one snapshot that may be found."""

    version: int
    by_name: Mapping[str, Entity]
    """By exposed name, in the catalog's order."""
    digest: str
    suspicious: frozenset[str] = frozenset()
    """Names of those whose definitions look like an attack: they never become tools."""
    meta_tools: dict[tuple[MetaNames, Projection, WireFormat], Definition] = field(
        default_factory=dict
    )
    """The cached definitions of the meta-tools."""

    def select(self, names: Collection[str], host: Collection[str]) -> list[Entity]:
        """Return the tools of these names that may become proxies beside the *host*'s tools."""
        return [
            self.by_name[name]
            for name in names
            if name in self.by_name and name not in host and name not in self.suspicious
        ]


class Definitions:
    """Writes definitions and counts their tokens. May be used from any thread."""

    def __init__(self, options: DiscoveryOptions) -> None:
        self._options = options
        self._lock = threading.Lock()
        self._proxies: dict[tuple[str, str, WireFormat, bool], Definition] = {}
        self._catalog_tokens: tuple[int, int] = (-1, 0)
        self.searchable: SearchableTools | None = None
        """The tools of the last snapshot that was read."""

    def read(self, snapshot: Snapshot) -> SearchableTools:
        """Read *snapshot*; cached definitions of tools that are gone are dropped."""
        with self._lock:
            if self.searchable is not None and self.searchable.version == snapshot.version:
                return self.searchable
            mask = snapshot.mask(Filters())
            entities = [entity for index, entity in enumerate(snapshot.entities) if mask[index]]
            current = {(entity.exposed_name, entity.digest) for entity in entities}
            self._proxies = {
                key: value for key, value in self._proxies.items() if key[:2] in current
            }
            self.searchable = SearchableTools(
                version=snapshot.version,
                by_name={entity.exposed_name: entity for entity in entities},
                digest=catalog_digest(entities, budget=self._options.digest_token_budget),
                suspicious=frozenset(
                    entity.exposed_name for entity in entities if entity.suspicious
                ),
            )
            return self.searchable

    def meta_tools(
        self,
        searchable: SearchableTools,
        names: MetaNames,
        projection: Projection,
        wire_format: WireFormat,
    ) -> Definition:
        """Return the meta-tools over *searchable*."""
        key = (names, projection, wire_format)
        cached = searchable.meta_tools.get(key)
        if cached is None:
            tools = self._write_meta_tools(searchable, *key)
            cached = Definition(tools=tools, tokens=json_tokens(tools))
            if len(searchable.meta_tools) < _MAX_CACHED:
                searchable.meta_tools[key] = cached
        return cached

    def _write_meta_tools(
        self,
        searchable: SearchableTools,
        names: MetaNames,
        projection: Projection,
        wire_format: WireFormat,
    ) -> tuple[Mapping[str, object], ...]:
        if projection != "native":
            tools = meta_tools(names, searchable.digest, stable=projection == "stable")
            return to_wire(tools, wire_format)
        # The digest gets the room that the call tool takes in other modes.
        budget = self._options.digest_token_budget
        room = json_tokens(to_wire((call_tool(names),), wire_format)) if budget else 0
        digest = catalog_digest(tuple(searchable.by_name.values()), budget=budget + room)
        return (native_tool(digest), *to_wire(adviser_tools(names), wire_format))

    def proxy(self, entity: Entity, wire_format: WireFormat, *, brief: bool = False) -> Definition:
        """Return *entity* as a tool; see `gateway.discovery.proxies.proxy`."""
        key = (entity.exposed_name, entity.digest, wire_format, brief)
        cached = self._proxies.get(key)
        if cached is None:
            tools = to_wire((proxy(entity, self._options, brief=brief),), wire_format)
            cached = self._proxies[key] = Definition(tools=tools, tokens=json_tokens(tools[0]))
        return cached

    def catalog_tokens(self, searchable: SearchableTools) -> int:
        """Estimate the tokens of all schemas of *searchable*, once for each version."""
        version, tokens = self._catalog_tokens
        if version != searchable.version:
            entities = searchable.by_name.values()
            tokens = sum(self.proxy(entity, "chat").tokens for entity in entities)
            self._catalog_tokens = (searchable.version, tokens)
        return tokens
