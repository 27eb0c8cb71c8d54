"""What one request to the model offers: the host's tools, the meta-tools, and the found ones.

The mode says how found tools reach the model:

    proxy   as tools of their own, appended as they are found
    stable  not as tools: their schemas stand in the search result, `call_tool` calls them
    native  loaded by the service itself from our answer to its tool search (Responses API)
    whole   the catalog is so small that all of it goes out, without meta-tools

A tool whose definition looks like an attack on a model is never offered: it is found by its name
and called by `call_tool`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from gateway.discovery.definitions import Definition, Definitions, Findable, Own, Shown, tokens_of
from gateway.discovery.meta_tools import MetaNames
from gateway.discovery.render_results import Count, Parameters
from gateway.discovery.token_count import counter
from gateway.discovery.window import Message, preselections, visible
from gateway.discovery.wire_formats import NATIVE_SEARCH, Form, names_of_tool
from gateway.errors import InvalidRequestError
from gateway.gateway import Gateway
from gateway.index.snapshot import Snapshot
from gateway.options.environment import vocabulary_dir
from gateway.types import Entity

_NONE = Own(tools=(), tokens=0)
_PRESELECTED_MESSAGES = 4
"""For how many of the last user messages tools are found before the model is asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """The tools of one request."""

    tools: tuple[Mapping[str, object], ...]
    """The host's own first, unchanged; then the meta-tools; then the proxies."""
    names: MetaNames
    host: frozenset[str]
    """Names whose calls the host answers itself."""
    proxies: tuple[str, ...]
    mode: Shown = "proxy"
    empty: bool = False
    """True if nothing of ours is offered: the catalog is empty."""
    own_tokens: int = 0
    """Estimated tokens of what is not the host's."""

    @property
    def tool_names(self) -> tuple[str, ...]:
        """All names, in order."""
        return tuple(name_of(tool) for tool in self.tools)

    @property
    def definition_tokens(self) -> int:
        """Estimated tokens of all definitions."""
        return definition_tokens(self.tools)

    def is_ours(self, name: str) -> bool:
        """Whether we answer a call of *name*, known or not; the service's own search only if it is
        we who offered it.
        """
        if name == NATIVE_SEARCH:
            return self.mode == "native"
        return not self.empty and name not in self.host


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What one request says that decides what is offered."""

    messages: Sequence[Message]
    """The conversation so far, as chat messages."""
    host_tools: Sequence[Mapping[str, object]] = ()
    form: Form = "chat"
    model: str = ""
    demanded: tuple[str, ...] = ()
    """Names that must be among the tools, if the catalog has them."""
    recalled: tuple[str, ...] = ()
    """Names of tools that were found before the messages begin."""
    mode: Literal["proxy", "stable"] | None = None
    """How found tools reach the model, if the options cannot decide that."""


class Discovery:
    """Makes the offers of one gateway. May be used from any thread."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._definitions = Definitions(gateway.options.discovery)
        self._without_native: set[str] = set()
        self._vocabularies = vocabulary_dir()

    async def offer(self, asked: Asked) -> Offer:
        """Say what the model may see next, when the index is built and what can be known before
        the model is asked is found; see `offered`.
        """
        found = await self._preselected(asked.messages)
        return self.offered(asked, await self._gateway.snapshot(), found)

    def offer_now(self, asked: Asked) -> Offer | None:
        """Give the same at once; None if something must be awaited."""
        snapshot = self._gateway.known
        waits = snapshot is None or self._gateway.options.discovery.preselect
        return None if waits or snapshot is None else self.offered(asked, snapshot, {})

    def offered(
        self, asked: Asked, snapshot: Snapshot, found: Mapping[int, tuple[str, ...]]
    ) -> Offer:
        """Say what the model may see next; an empty catalog adds nothing to the host's tools.

        Args:
            asked: The request.
            snapshot: The index.
            found: The names that were found for a message already, by the message's place.

        Raises:
            InvalidRequestError: If the host's own tools leave no room for the meta-tools, or the
                mode cannot work with this request.
        """
        options = self._gateway.options.discovery
        findable = self._definitions.of(snapshot)
        host = frozenset(name for tool in asked.host_tools for name in names_of_tool(tool))
        names = self._definitions.names(findable, host)
        if not findable.names:
            tools = tuple(asked.host_tools)
            return Offer(tools=tools, names=names, host=host, proxies=(), empty=True)
        if self._goes_whole(findable, asked):
            every = findable.found(findable.names, host)
            return self._made(asked, host, names, _NONE, every, "whole")
        mode = self._mode(asked)
        own = self._definitions.own(names, mode, asked.form)
        room = options.max_tools - len(asked.host_tools) - len(own.tools)
        if room < 0:
            raise InvalidRequestError(
                f"{len(asked.host_tools)} tools of the host leave no room for the meta-tools: a "
                f"request carries at most {options.max_tools}. Register them with the gateway."
            )
        cap = min(room, options.proxies_per_conversation)
        shown = _shown(asked, names, mode, cap, {**found, -1: asked.recalled})
        return self._made(asked, host, names, own, findable.found(shown, host), mode)

    async def _preselected(self, messages: Sequence[Message]) -> dict[int, tuple[str, ...]]:
        """Find tools for the last user messages; equal texts find equal tools, from the cache."""
        limit = self._gateway.options.discovery.preselect
        if not limit:
            return {}
        asked = preselections(messages)[-_PRESELECTED_MESSAGES:]
        found: dict[int, tuple[str, ...]] = {}
        for place, text in asked:
            result = await self._gateway.search(text, limit=limit)
            found[place] = tuple(match.name for match in result.matches)
        return found

    def _made(
        self,
        asked: Asked,
        host: frozenset[str],
        names: MetaNames,
        own: Own,
        found: Sequence[Entity],
        mode: Shown,
    ) -> Offer:
        proxies = [self._definitions.proxy(entity, asked.form) for entity in found]
        tokens = own.tokens + sum(each.tokens for each in proxies)
        return Offer(
            tools=(*asked.host_tools, *own.tools, *(each.tool for each in proxies)),
            names=names,
            host=host,
            proxies=tuple(entity.exposed_name for entity in found),
            mode=mode,
            own_tokens=tokens,
        )

    def _goes_whole(self, findable: Findable, asked: Asked) -> bool:
        options = self._gateway.options.discovery
        # A suspicious tool is not sent: only the meta-tools can find and call it.
        if findable.suspicious:
            return False
        if len(findable.names) + len(asked.host_tools) > options.max_tools:
            return False
        if len(findable.names) < options.min_tools:
            return True
        most = options.context_share * options.context_tokens
        return most > 0 and self._definitions.catalog_tokens(findable) <= most

    def _mode(self, asked: Asked) -> Shown:
        mode = asked.mode or self._gateway.options.discovery.mode
        if mode in {"proxy", "stable"}:
            return "stable" if mode == "stable" else "proxy"
        searches = any(tool.get("type") == "tool_search" for tool in asked.host_tools)
        if mode == "auto":
            fits = asked.form == "responses" and not searches
            return "native" if fits and asked.model not in self._without_native else "proxy"
        if asked.form != "responses":
            raise InvalidRequestError(
                "mode 'native' needs the Responses API: use responses.create, or mode 'auto'"
            )
        if searches:
            raise InvalidRequestError(
                "mode 'native' brings its own tool_search: leave the host's out, or use 'proxy'"
            )
        return "native"

    def without_native(self, model: str) -> bool:
        """Note that the service refuses native search for *model*; say whether that is new."""
        if self._gateway.options.discovery.mode != "auto" or model in self._without_native:
            return False
        self._without_native.add(model)
        return True

    def loaded(self, names: Sequence[str]) -> tuple[Mapping[str, object], ...]:
        """Write tools as the Responses API loads them, by their exposed names: as briefly as the
        results of the other modes tell them.
        """
        return tuple({**each.tool, "defer_loading": True} for each in self._brief(names))

    def loaded_tokens(self, names: Sequence[str]) -> int:
        """Estimate the tokens that they add to every request from now on."""
        return sum(each.tokens for each in self._brief(names))

    def _brief(self, names: Sequence[str]) -> list[Definition]:
        findable = self._definitions.known
        found = findable.found(names, ()) if findable is not None else []
        return [self._definitions.proxy(entity, "responses", brief=True) for entity in found]

    def told(self, snapshot: Snapshot, name: str) -> Parameters | None:
        """Write the parameters of the tool with this exposed name, once; None if there is none."""
        return self._definitions.told(snapshot, name)

    def counter(self, model: str) -> Count:
        """Give what counts tokens as *model* does."""
        return counter(model, self._vocabularies)

    def catalog_tokens(self) -> int:
        """Estimate the tokens of all schemas of the catalog, as they would be sent."""
        findable = self._definitions.known
        return self._definitions.catalog_tokens(findable) if findable is not None else 0


def _shown(
    asked: Asked,
    names: MetaNames,
    mode: Shown,
    cap: int,
    found: Mapping[int, tuple[str, ...]],
) -> tuple[str, ...]:
    wanted = [name for name in asked.demanded if name not in names][: max(cap, 0)]
    if mode != "proxy":
        return tuple(wanted)
    listed = visible(asked.messages, names, cap=cap - len(wanted), found=found)
    return (*listed, *(name for name in wanted if name not in listed))


def name_of(tool: Mapping[str, object]) -> str:
    """Give the name of one entry of a request's ``tools``; "" for tools without one."""
    return next(iter(names_of_tool(tool)), "") if tool.get("type") != "namespace" else ""


def definition_tokens(tools: Sequence[Mapping[str, object]]) -> int:
    """Estimate the tokens of tool definitions as they are sent."""
    return tokens_of(list(tools))
