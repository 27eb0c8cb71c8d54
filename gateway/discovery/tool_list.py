"""Tool list of a request to the model: the host's tools, the meta-tools, and the found tools.

The mode decides how the model receives found tools:

    proxy   as tools, appended when they are found stable  as schemas in the search result; the
    model calls them by `call_tool` native  loaded by the model service from the answer to its own
    tool search (Responses API) all     a small catalog is sent as a whole, without meta-tools

A tool with a suspicious definition is never listed, but the model can call it by `call_tool`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from gateway.discovery.meta_tools import (
    MetaNames,
    adviser_tools,
    catalog_digest,
    meta_names,
    meta_tools,
    native_tool,
    plugin_tools,
    registered_tools,
)
from gateway.discovery.window import Message, proxy, user_texts, visible_proxies
from gateway.discovery.wire_formats import NATIVE_SEARCH, WireFormat, names_of_tool, to_wire
from gateway.errors import InvalidRequestError
from gateway.gateway import Gateway
from gateway.options import DiscoveryOptions
from gateway.runtime.cache import Cache
from gateway.runtime.text import json_tokens
from gateway.types import ANYONE, Caller, Entity

Projection = Literal["proxy", "stable", "native", "all"]
"""The way in which the model receives found tools."""
_MAX_CALLERS = 16
"""Maximum number of cached `SearchableTools`, one for each snapshot version and audience."""
_MAX_COUNTED = 100_000
"""Maximum number of tools whose token counts are cached."""
_PRESELECTED_MESSAGES = 4
"""Maximum number of recent user messages whose texts are searched before a request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolList:
    """The tools of one request."""

    tools: tuple[Mapping[str, object], ...] = ()
    """The host's tools, unchanged; then the meta-tools; then the proxies."""
    names: MetaNames
    host: frozenset[str] = frozenset()
    """Names of tools whose calls the host answers."""
    proxies: tuple[str, ...] = ()
    found: tuple[str, ...] | None = None
    """Names of the tools that the conversation has found; None if no plugin adds meta-tools."""
    mode: Projection = "proxy"
    is_empty: bool = False
    """True if the list has only the host's tools, because the catalog is empty."""
    own_tokens: int = 0
    """Estimated tokens of the definitions of the meta-tools and proxies."""
    searchable: SearchableTools | None = None
    """The tools that the caller may find; None if the catalog is empty."""
    caller: Caller = ANYONE

    @property
    def tool_names(self) -> tuple[str, ...]:
        """Names of all tools in the list that the model may call, in order."""
        return tuple(name for tool in self.tools for name in names_of_tool(tool))

    def is_ours(self, name: str) -> bool:
        """Return whether the gateway, not the host, answers a call of *name*, even if unknown.

        The native search is answered only in mode ``native``.
        """
        if name == NATIVE_SEARCH:
            return self.mode == "native"
        return not self.is_empty and name not in self.host


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolListRequest:
    """Settings and messages that determine the tool list of one request."""

    messages: Sequence[Message]
    """The conversation so far, as chat messages."""
    host_tools: Sequence[Mapping[str, object]] = ()
    wire_format: WireFormat = "chat"
    model: str = ""
    required: tuple[str, ...] = ()
    """Names of catalog tools that must be in the list, because the request requires their call."""
    recalled: tuple[str, ...] = ()
    """Names of tools that were found before the first of *messages*."""
    mode: Literal["proxy", "stable"] | None = None
    """Mode for this request; None uses the mode of the options."""
    caller: Caller = ANYONE


@dataclass(frozen=True, kw_only=True, eq=False)
class SearchableTools:
    """The tools of one snapshot that one caller may find."""

    by_name: Mapping[str, Entity]
    """Tools in the order of the catalog, keyed by exposed name."""
    digest: str
    """Summary of the catalog, for the description of the search tool."""
    options: DiscoveryOptions
    token_counts: Cache[int]
    """Estimated tokens of each tool's definition, keyed by the digest of the definition."""

    @cached_property
    def tokens(self) -> int:
        """Estimated tokens of the definitions of all these tools, as they would be sent."""
        return sum(map(self._count, self.by_name.values()))

    def _count(self, entity: Entity) -> int:
        count = self.token_counts.peek(entity.digest)
        if count is None:
            count = json_tokens(proxy(entity, self.options))
            self.token_counts.put(entity.digest, count)
        return count

    def select(self, names: Collection[str], host: Collection[str] = ()) -> list[Entity]:
        """Return the tools *names* that may become proxies: not suspicious, and not in *host*."""
        entities = (self.by_name.get(name) for name in names if name not in host)
        return [entity for entity in entities if entity is not None and not entity.suspicious]


class ToolListBuilder:
    """Builds the tool lists of one gateway. Safe from any thread."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._options = gateway.options.discovery
        self._added = registered_tools(gateway)
        self._without_native: set[str] = set()
        self._searchable = Cache[SearchableTools]("tools", max_items=_MAX_CALLERS)
        """Searchable tools, keyed by snapshot version and audience of the caller."""
        self._token_counts = Cache[int]("tokens", max_items=_MAX_COUNTED)

    async def build(self, request: ToolListRequest) -> ToolList:
        """Build the tool list of the next request.

        An empty catalog adds nothing to the host's tools.

        Raises:
            InvalidRequestError: If the host's tools leave no room for the meta-tools, or the mode
                does not work with this request.
        """
        preselected = await self._preselect(request)
        searchable = await self.searchable(request.caller)
        host = frozenset(name for tool in request.host_tools for name in names_of_tool(tool))
        names = self.names(searchable, host)
        listed = ToolList(names=names, host=host, caller=request.caller)
        if not searchable.by_name:
            return replace(listed, tools=tuple(request.host_tools), is_empty=True)
        mode = "all" if self._lists_all(searchable, request) else self._mode(request)
        meta = _meta_tools(names, searchable.digest, mode, request.wire_format)
        found_names = {**preselected, -1: request.recalled}
        if mode == "all":
            selected: Collection[str] = searchable.by_name
        else:
            cap = min(self._room(request, meta), self._options.proxies_per_conversation)
            selected = _proxy_names(request, names, mode, cap, found_names)
        entities = searchable.select(selected, host)
        proxies = [
            to_wire(proxy(entity, self._options), request.wire_format) for entity in entities
        ]
        return replace(
            listed,
            tools=(*request.host_tools, *meta, *proxies),
            proxies=tuple(entity.exposed_name for entity in entities),
            found=self._found(request, names, selected, found_names) if names.added else None,
            mode=mode,
            own_tokens=sum(map(json_tokens, (*meta, *proxies))),
            searchable=searchable,
        )

    def names(self, searchable: SearchableTools, host: Collection[str] = ()) -> MetaNames:
        """Choose names for the meta-tools that are neither in *host* nor in the catalog."""
        return meta_names(self._options, host, avoid=searchable.by_name, added=self._added)

    def _found(
        self,
        request: ToolListRequest,
        names: MetaNames,
        shown: Collection[str],
        found: Mapping[int, tuple[str, ...]],
    ) -> tuple[str, ...]:
        cap = self._options.proxies_per_conversation
        visible = visible_proxies(request.messages, names, cap=cap, found=found)
        return tuple(dict.fromkeys([*visible, *shown]))

    async def _preselect(self, request: ToolListRequest) -> dict[int, tuple[str, ...]]:
        """Search for the last user messages. Return found names, keyed by message index."""
        limit, wait = self._options.preselect, self._gateway.options.search.models_wait
        if not limit:
            return {}
        results: dict[int, tuple[str, ...]] = {}
        for index, text in user_texts(request.messages)[-_PRESELECTED_MESSAGES:]:
            result = await self._gateway.search(text, limit=limit, caller=request.caller, wait=wait)
            results[index] = tuple(match.name for match in result.matches)
        return results

    async def searchable(self, caller: Caller) -> SearchableTools:
        """Return the tools that *caller* may find; the same object until the catalog changes."""
        snapshot = await self._gateway.snapshot()
        key = (snapshot.version, snapshot.audience(caller))
        searchable = self._searchable.peek(key)
        if searchable is None:
            entities = snapshot.visible(caller.filters())
            searchable = SearchableTools(
                by_name={entity.exposed_name: entity for entity in entities},
                digest=catalog_digest(entities, budget=self._options.digest_token_budget),
                options=self._options,
                token_counts=self._token_counts,
            )
            self._searchable.put(key, searchable)
        return searchable

    def _lists_all(self, searchable: SearchableTools, request: ToolListRequest) -> bool:
        options, count = self._options, len(searchable.by_name)
        if count + len(request.host_tools) > options.max_tools:
            return False
        # Suspicious tools are not sent, so they need the meta-tools.
        if any(entity.suspicious for entity in searchable.by_name.values()):
            return False
        budget = options.context_share * options.context_tokens
        return count < options.min_tools or (budget > 0 and searchable.tokens <= budget)

    def _mode(self, request: ToolListRequest) -> Projection:
        mode = request.mode or self._options.mode
        if mode in {"proxy", "stable"}:
            return "stable" if mode == "stable" else "proxy"
        has_search = any(tool.get("type") == "tool_search" for tool in request.host_tools)
        if mode == "auto":
            fits = request.wire_format == "responses" and not has_search
            return "native" if fits and request.model not in self._without_native else "proxy"
        if request.wire_format != "responses":
            raise InvalidRequestError(
                "mode 'native' needs the Responses API: use responses.create, or mode 'auto'"
            )
        if has_search:
            raise InvalidRequestError(
                "mode 'native' brings its own tool_search: leave the host's out, or use 'proxy'"
            )
        return "native"

    def _room(self, request: ToolListRequest, own: Sequence[object]) -> int:
        count, limit = len(request.host_tools), self._options.max_tools
        if count + len(own) > limit:
            raise InvalidRequestError(
                f"{count} tools of the host leave no room for the meta-tools: a request carries at "
                f"most {limit}. Register them with the gateway."
            )
        return limit - count - len(own)

    def disable_native(self, model: str) -> bool:
        """Note that the model service refuses native search for *model*. Return False if known."""
        if self._options.mode != "auto" or model in self._without_native:
            return False
        self._without_native.add(model)
        return True


def loaded_tools(tools: ToolList, names: Sequence[str]) -> list[Mapping[str, object]]:
    """Return the brief definitions of *names*, in the form that the Responses API loads."""
    searchable = tools.searchable
    if searchable is None:
        return []
    brief = (proxy(entity, searchable.options, brief=True) for entity in searchable.select(names))
    return [{**to_wire(tool, "responses"), "defer_loading": True} for tool in brief]


def _meta_tools(
    names: MetaNames, digest: str, mode: Projection, wire_format: WireFormat
) -> tuple[Mapping[str, object], ...]:
    if mode == "all":
        return tuple(to_wire(tool, wire_format) for tool in plugin_tools(names))
    if mode == "native":
        added = {name: tool for name, tool in names.added.items() if tool.native}
        others = (*adviser_tools(names), *plugin_tools(replace(names, added=added)))
        return (native_tool(digest), *(to_wire(tool, wire_format) for tool in others))
    tools = meta_tools(names, digest, stable=mode == "stable")
    return tuple(to_wire(tool, wire_format) for tool in tools)


def _proxy_names(
    request: ToolListRequest,
    names: MetaNames,
    mode: Projection,
    cap: int,
    found: Mapping[int, tuple[str, ...]],
) -> tuple[str, ...]:
    required = [name for name in request.required if name not in names][:cap]
    if mode != "proxy":
        return tuple(required)
    visible = visible_proxies(request.messages, names, cap=cap - len(required), found=found)
    return (*visible, *(name for name in required if name not in visible))
