"""The tool list of one request to the model: the host's tools, the meta-tools, and the found ones.

The mode says how found tools reach the model:

    proxy   as tools of their own, appended as they are found
    stable  not as tools: their schemas stand in the search result, `call_tool` calls them
    native  loaded by the service itself from our answer to its tool search (Responses API)
    all     the catalog is so small that all of it goes out, without meta-tools

A tool whose definition looks like an attack on a model is never listed: it is found by its name and
called by `call_tool`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from gateway.discovery.definitions import Definition, Definitions, Projection, SearchableTools
from gateway.discovery.meta_tools import MetaNames, meta_names
from gateway.discovery.token_count import TokenCounter, json_tokens, token_counter
from gateway.discovery.window import Message, user_texts, visible_proxies
from gateway.discovery.wire_formats import NATIVE_SEARCH, WireFormat, names_of_tool
from gateway.errors import InvalidRequestError
from gateway.gateway import Gateway
from gateway.options.environment import vocabulary_dir
from gateway.types import Entity

_PRESELECTED_MESSAGES = 4
"""For how many of the last user messages tools are found before the model is asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolList:
    """The tools of one request."""

    tools: tuple[Mapping[str, object], ...]
    """The host's own first, unchanged; then the meta-tools; then the proxies."""
    names: MetaNames
    host: frozenset[str] = frozenset()
    """Names whose calls the host answers itself."""
    proxies: tuple[str, ...] = ()
    mode: Projection = "proxy"
    is_empty: bool = False
    """True if nothing of ours is listed: the catalog is empty."""
    own_tokens: int = 0
    """Estimated tokens of what is not the host's."""

    @property
    def tool_names(self) -> tuple[str, ...]:
        """All names, in order."""
        return tuple(name_of(tool) for tool in self.tools)

    def is_ours(self, name: str) -> bool:
        """Return whether we answer a call of *name*, in the catalog or not; the service's own
        search only if we have listed it.
        """
        if name == NATIVE_SEARCH:
            return self.mode == "native"
        return not self.is_empty and name not in self.host


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolListRequest:
    """What decides the tool list of one request to the model."""

    messages: Sequence[Message]
    """The conversation so far, as chat messages."""
    host_tools: Sequence[Mapping[str, object]] = ()
    wire_format: WireFormat = "chat"
    model: str = ""
    required: tuple[str, ...] = ()
    """Names that must be among the tools, if the catalog has them."""
    recalled: tuple[str, ...] = ()
    """Names of tools that were found before the messages begin."""
    mode: Literal["proxy", "stable"] | None = None
    """How found tools reach the model, if the options cannot decide that."""


class ToolListBuilder:
    """Builds the tool lists of one gateway. May be used from any thread."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._options = gateway.options.discovery
        self._definitions = Definitions(self._options)
        self._without_native: set[str] = set()
        self._vocabularies = vocabulary_dir()

    async def build(self, request: ToolListRequest) -> ToolList:
        """List what the model may see next; an empty catalog adds nothing to the host's tools.

        Raises:
            InvalidRequestError: If the host's own tools leave no room for the meta-tools, or the
                mode cannot work with this request.
        """
        found = await self._preselect(request.messages)
        searchable = self._definitions.read(await self._gateway.snapshot())
        host = frozenset(name for tool in request.host_tools for name in names_of_tool(tool))
        names = meta_names(self._options, host, avoid=searchable.by_name)
        if not searchable.by_name:
            return ToolList(tools=tuple(request.host_tools), names=names, host=host, is_empty=True)
        if self._lists_all(searchable, request):
            entities = searchable.select(searchable.by_name, host)
            return self._list(request, host, names, Definition(tools=(), tokens=0), entities, "all")
        mode = self._mode(request)
        own = searchable.meta_tools(names, mode, request.wire_format)
        room = self._options.max_tools - len(request.host_tools) - len(own.tools)
        if room < 0:
            raise InvalidRequestError(
                f"{len(request.host_tools)} tools of the host leave no room for the meta-tools: a "
                f"request carries at most {self._options.max_tools}. Register them with the "
                "gateway."
            )
        cap = min(room, self._options.proxies_per_conversation)
        proxies = _proxy_names(request, names, mode, cap, {**found, -1: request.recalled})
        return self._list(request, host, names, own, searchable.select(proxies, host), mode)

    async def _preselect(self, messages: Sequence[Message]) -> dict[int, tuple[str, ...]]:
        """Search for the last user messages; equal texts have equal results, from the cache."""
        limit = self._options.preselect
        if not limit:
            return {}
        found: dict[int, tuple[str, ...]] = {}
        for index, text in user_texts(messages)[-_PRESELECTED_MESSAGES:]:
            result = await self._gateway.search(text, limit=limit)
            found[index] = tuple(match.name for match in result.matches)
        return found

    def _list(
        self,
        request: ToolListRequest,
        host: frozenset[str],
        names: MetaNames,
        own: Definition,
        entities: Sequence[Entity],
        mode: Projection,
    ) -> ToolList:
        proxies = [self._definitions.proxy(entity, request.wire_format) for entity in entities]
        found = (tool for definition in proxies for tool in definition.tools)
        return ToolList(
            tools=(*request.host_tools, *own.tools, *found),
            names=names,
            host=host,
            proxies=tuple(entity.exposed_name for entity in entities),
            mode=mode,
            own_tokens=own.tokens + sum(definition.tokens for definition in proxies),
        )

    def _lists_all(self, searchable: SearchableTools, request: ToolListRequest) -> bool:
        options, count = self._options, len(searchable.by_name)
        # A suspicious tool is not sent: only the meta-tools can find and call it.
        if searchable.suspicious or count + len(request.host_tools) > options.max_tools:
            return False
        if count < options.min_tools:
            return True
        budget = options.context_share * options.context_tokens
        return budget > 0 and self._definitions.catalog_tokens(searchable) <= budget

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

    def disable_native(self, model: str) -> bool:
        """Note that the service refuses native search for *model*; return whether that is new."""
        if self._options.mode != "auto" or model in self._without_native:
            return False
        self._without_native.add(model)
        return True

    def loaded_tools(self, names: Sequence[str]) -> Definition:
        """Return tools as the Responses API loads them, with one line of description each, and the
        tokens that they add to every request from now on.
        """
        searchable = self._definitions.searchable
        entities = searchable.select(names, ()) if searchable is not None else []
        brief = [self._definitions.proxy(entity, "responses", brief=True) for entity in entities]
        return Definition(
            tools=tuple(
                {**tool, "defer_loading": True} for definition in brief for tool in definition.tools
            ),
            tokens=sum(definition.tokens for definition in brief),
        )

    def token_counter(self, model: str) -> TokenCounter:
        """Return what counts tokens as *model* does."""
        return token_counter(model, self._vocabularies)

    def catalog_tokens(self) -> int:
        """Estimate the tokens of all schemas of the catalog, as they would be sent."""
        searchable = self._definitions.searchable
        return self._definitions.catalog_tokens(searchable) if searchable is not None else 0


def _proxy_names(
    request: ToolListRequest,
    names: MetaNames,
    mode: Projection,
    cap: int,
    found: Mapping[int, tuple[str, ...]],
) -> tuple[str, ...]:
    required = [name for name in request.required if name not in names][: max(cap, 0)]
    if mode != "proxy":
        return tuple(required)
    visible = visible_proxies(request.messages, names, cap=cap - len(required), found=found)
    return (*visible, *(name for name in required if name not in visible))


def name_of(tool: Mapping[str, object]) -> str:
    """Return the name of one entry of a request's ``tools``; "" for tools without one."""
    return next(iter(names_of_tool(tool)), "") if tool.get("type") != "namespace" else ""


def definition_tokens(tools: Sequence[Mapping[str, object]]) -> int:
    """Estimate the tokens of tool definitions as they are sent."""
    return json_tokens(list(tools))
