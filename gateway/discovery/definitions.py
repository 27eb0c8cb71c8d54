"""Tool definitions of one catalog, written once and cached until the tool changes."""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal

from gateway.discovery.meta_tools import (
    MetaNames,
    adviser_tools,
    call_tool,
    catalog_digest,
    meta_names,
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
    """What the catalog holds, for the description of the search tool."""
    native_digest: str
    """The same in native mode: it gets the room of the call tool, which that mode lacks."""
    suspicious: frozenset[str] = frozenset()
    """Names of those whose definitions look like an attack: they never become tools."""

    def select(self, names: Collection[str], host: Collection[str]) -> list[Entity]:
        """Return the tools of these names that may become proxies beside the *host*'s tools."""
        return [
            self.by_name[name]
            for name in names
            if name in self.by_name and name not in host and name not in self.suspicious
        ]

    def meta_tools(
        self, names: MetaNames, projection: Projection, wire_format: WireFormat
    ) -> Definition:
        """Return the meta-tools over this catalog."""
        if projection == "native":
            advisers = to_wire(adviser_tools(names), wire_format)
            tools: tuple[Mapping[str, object], ...] = (native_tool(self.native_digest), *advisers)
        else:
            stable = projection == "stable"
            tools = to_wire(meta_tools(names, self.digest, stable=stable), wire_format)
        return Definition(tools=tools, tokens=json_tokens(tools))


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
            if self.searchable is None or self.searchable.version != snapshot.version:
                self.searchable = self._read(snapshot)
            return self.searchable

    def _read(self, snapshot: Snapshot) -> SearchableTools:
        mask = snapshot.mask(Filters())
        entities = [entity for index, entity in enumerate(snapshot.entities) if mask[index]]
        current = {(entity.exposed_name, entity.digest) for entity in entities}
        self._proxies = {key: value for key, value in self._proxies.items() if key[:2] in current}
        budget = self._options.digest_token_budget
        call = to_wire((call_tool(meta_names(self._options, ())),), "responses")
        native_budget = budget + json_tokens(call) if budget else 0
        return SearchableTools(
            version=snapshot.version,
            by_name={entity.exposed_name: entity for entity in entities},
            digest=catalog_digest(entities, budget=budget),
            native_digest=catalog_digest(entities, budget=native_budget),
            suspicious=frozenset(entity.exposed_name for entity in entities if entity.suspicious),
        )

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
