"""Tool definitions of one catalog, written once and kept until the tool changes."""

from __future__ import annotations

import json
import threading
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal

from gateway.discovery.meta_tools import (
    MetaNames,
    advisers,
    call_tool,
    digest,
    meta_names,
    meta_tools,
    native_tool,
)
from gateway.discovery.proxies import parameters, proxy
from gateway.discovery.render_results import Parameters
from gateway.discovery.wire_formats import Form, written
from gateway.index.snapshot import Snapshot
from gateway.options import DiscoveryOptions
from gateway.runtime.text import estimate_tokens
from gateway.types import Entity, Filters

Shown = Literal["proxy", "stable", "native", "whole"]
"""How found tools reach the model in one request; see `offer`."""
_WRITTEN = 64
"""How many spellings of the meta-tools are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """One tool as it goes out."""

    tool: Mapping[str, object]
    tokens: int
    """Estimated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Own:
    """The meta-tools of a conversation as they go out."""

    tools: tuple[Mapping[str, object], ...]
    tokens: int
    """Estimated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Findable:
    """The tools that may be found in one snapshot, and what was written of them."""

    version: int
    names: Mapping[str, Entity]
    """By exposed name, in the catalog's order."""
    digest: str
    own: dict[tuple[MetaNames, Shown, Form], Own] = field(default_factory=dict)
    """The last meta-tools that were written for it."""
    named: dict[frozenset[str], MetaNames] = field(default_factory=dict)
    """The names of the meta-tools beside a host's tools, for the last few sets of those."""
    told: dict[str, Parameters] = field(default_factory=dict)
    """The parameters that were written for results, by exposed name."""

    suspicious: frozenset[str] = frozenset()
    """The names of those whose definitions look like an attack: they never become tools."""

    def found(self, shown: Collection[str], host: Collection[str]) -> list[Entity]:
        """Give the entities of those names that there are and that may become tools, but for
        what the host has taken.
        """
        kept = (name for name in shown if name in self.names and name not in host)
        return [self.names[name] for name in kept if name not in self.suspicious]


class Definitions:
    """Writes definitions and counts their tokens, each once. May be used from any thread."""

    def __init__(self, options: DiscoveryOptions) -> None:
        self._options = options
        self._lock = threading.Lock()
        self._findable: Findable | None = None
        self._proxies: dict[tuple[str, str, Form, bool], Definition] = {}
        self._whole: tuple[int, int] = (-1, 0)

    @property
    def known(self) -> Findable | None:
        """What may be found in the snapshot that was read last."""
        return self._findable

    def of(self, snapshot: Snapshot) -> Findable:
        """Read *snapshot*; what was written for tools that are gone is forgotten."""
        with self._lock:
            known = self._findable
            if known is not None and known.version == snapshot.version:
                return known
            mask = snapshot.mask(Filters())
            entities = [entity for spot, entity in enumerate(snapshot.entities) if mask[spot]]
            made = Findable(
                version=snapshot.version,
                names={entity.exposed_name: entity for entity in entities},
                digest=digest(entities, budget=self._options.digest_token_budget),
                suspicious=frozenset(each.exposed_name for each in entities if each.suspicious),
            )
            alive = {(entity.exposed_name, entity.digest) for entity in entities}
            self._proxies = {key: value for key, value in self._proxies.items() if key[:2] in alive}
            self._findable = made
            return made

    def names(self, findable: Findable, host: frozenset[str]) -> MetaNames:
        """Name the meta-tools beside the *host*'s tools."""
        known = findable.named.get(host)
        if known is None:
            known = meta_names(self._options, host, avoid=findable.names)
            if len(findable.named) < _WRITTEN:
                findable.named[host] = known
        return known

    def own(self, names: MetaNames, mode: Shown, form: Form) -> Own:
        """Write the meta-tools over what was read last."""
        findable = self._findable
        if findable is None:
            return Own(tools=(), tokens=0)
        known = findable.own.get((names, mode, form))
        if known is None:
            made = self._written(findable, names, mode, form)
            known = Own(tools=made, tokens=tokens_of(made))
            if len(findable.own) < _WRITTEN:
                findable.own[names, mode, form] = known
        return known

    def _written(
        self, findable: Findable, names: MetaNames, mode: Shown, form: Form
    ) -> tuple[Mapping[str, object], ...]:
        if mode != "native":
            return written(meta_tools(names, findable.digest, stable=mode == "stable"), form)
        # The digest gets the room that the call tool takes in other modes.
        budget = self._options.digest_token_budget
        room = tokens_of(written((call_tool(names),), form)) if budget else 0
        told = digest(tuple(findable.names.values()), budget=budget + room)
        return (native_tool(told), *written(advisers(names), form))

    def proxy(self, entity: Entity, form: Form, *, brief: bool = False) -> Definition:
        """Write *entity* as a tool; see `gateway.discovery.proxies.proxy`."""
        key = (entity.exposed_name, entity.digest, form, brief)
        known = self._proxies.get(key)
        if known is None:
            (tool,) = written((proxy(entity, self._options, brief=brief),), form)
            known = self._proxies[key] = Definition(tool=tool, tokens=tokens_of(tool))
        return known

    def told(self, snapshot: Snapshot, name: str) -> Parameters | None:
        """Write what the tool of this exposed name takes; None if it cannot be found, or nobody
        is to be told.
        """
        findable = self.of(snapshot)
        if name in findable.suspicious:
            return None
        known, entity = findable.told.get(name), findable.names.get(name)
        if known is None and entity is not None:
            known = Parameters(parameters(entity.definition.input_schema))
            findable.told[name] = known
        return known

    def catalog_tokens(self, findable: Findable) -> int:
        """Estimate the tokens of all schemas of *findable*, once for each version."""
        version, tokens = self._whole
        if version != findable.version:
            tokens = sum(self.proxy(each, "chat").tokens for each in findable.names.values())
            self._whole = (findable.version, tokens)
        return tokens


def tokens_of(value: object) -> int:
    """Estimate the tokens of *value* as JSON."""
    return estimate_tokens(json.dumps(value, ensure_ascii=False, default=str))
