"""What one request to the model offers: the host's tools, ours, the found ones."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gateway.discovery.metatools import FunctionTool, MetaNames, digest, meta_names, meta_tools
from gateway.discovery.proxies import proxy
from gateway.discovery.window import Message, visible
from gateway.errors import InvalidRequestError
from gateway.gateway import Gateway
from gateway.search.index import Snapshot
from gateway.text import estimate_tokens
from gateway.types import Filters

_META_TOOLS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """The tools of one request."""

    tools: tuple[Mapping[str, object], ...]
    """The host's own first, unchanged; then the meta-tools; then the proxies."""
    names: MetaNames
    host: frozenset[str]
    """Names that the host answers itself."""
    proxies: tuple[str, ...]

    @property
    def tool_names(self) -> tuple[str, ...]:
        """All names, in order."""
        return tuple(name_of(tool) for tool in self.tools)

    @property
    def definition_tokens(self) -> int:
        """Estimated tokens of all definitions."""
        return definition_tokens(self.tools)


class Discovery:
    """Makes the offers of one gateway."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._lock = threading.Lock()
        self._digest: tuple[int, str] = (-1, "")

    async def offer(
        self, messages: Sequence[Message], host_tools: Sequence[Mapping[str, object]]
    ) -> Offer:
        """Say what the model may see next. An empty catalog adds nothing to the host's tools.

        Raises:
            InvalidRequestError: If the host's own tools leave no room for the meta-tools.
        """
        options = self._gateway.options.discovery
        snapshot = await self._gateway.snapshot()
        mask = snapshot.mask(Filters())
        host = frozenset(name_of(tool) for tool in host_tools)
        # The catalog avoids the configured names; those that move aside must avoid the catalog's.
        exposed = (entity.exposed_name for entity in snapshot.entities)
        names = meta_names(options, host, avoid=frozenset(exposed))
        if not mask.any():
            return Offer(tools=tuple(host_tools), names=names, host=host, proxies=())
        room = options.max_tools - len(host_tools) - _META_TOOLS
        if room < 0:
            raise InvalidRequestError(
                f"{len(host_tools)} tools of the host leave no room for the two meta-tools: a "
                f"request carries at most {options.max_tools}. Register them with the gateway."
            )
        shown = visible(messages, names, cap=min(room, options.proxies_per_conversation))
        found = [
            snapshot.entities[spot]
            for name in shown
            if name not in host
            for spot in snapshot.exposed(name)
            if mask[spot]
        ]
        own = meta_tools(names, self._told(snapshot))
        proxies = [proxy(entity, options) for entity in found]
        return Offer(
            tools=(*host_tools, *own, *proxies),
            names=names,
            host=host,
            proxies=tuple(entity.exposed_name for entity in found),
        )

    def _told(self, snapshot: Snapshot) -> str:
        with self._lock:
            version, text = self._digest
            if version != snapshot.version:
                mask = snapshot.mask(Filters())
                entities = [entity for spot, entity in enumerate(snapshot.entities) if mask[spot]]
                text = digest(entities, budget=self._gateway.options.discovery.digest_token_budget)
                self._digest = (snapshot.version, text)
            return text


def name_of(tool: Mapping[str, object]) -> str:
    """Give the name of one entry of a request's ``tools``; "" for tools without one."""
    inner = tool.get(str(tool.get("type")))
    named = inner if isinstance(inner, Mapping) else tool
    return str(named.get("name", ""))


def definition_tokens(tools: Sequence[Mapping[str, object]] | Sequence[FunctionTool]) -> int:
    """Estimate the tokens of tool definitions as they are sent."""
    return estimate_tokens(json.dumps(list(tools), ensure_ascii=False, default=str))
