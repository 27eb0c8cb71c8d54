"""What servers have besides tools: resources to read, prompts to fill in, and their completions.

A thing is named by its id, by its address here, or as its own server calls it, if only one does.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeGuard

from gateway.call.hooks import Action, Call, CallHook
from gateway.call.resource_names import candidates, described_by, entities_of
from gateway.catalog.identity import SERVER_KINDS, entity_id, from_gateway_uri
from gateway.errors import InvalidRequestError, UpstreamError
from gateway.index.snapshot import Snapshot
from gateway.mcp.skills import FILES, FRONT, is_as_listed
from gateway.runtime.json_schema import as_object, as_objects, as_text
from gateway.runtime.naming import canonical_uri
from gateway.runtime.text import visible_json
from gateway.sources.cached import CachedSource
from gateway.sources.mcp import ClientCapabilities
from gateway.sources.protocol import ResourceSource, Source, resources_of, watchable
from gateway.sources.registry import Registry
from gateway.sources.transforms import TransformedSource
from gateway.sources.virtual import VirtualSource
from gateway.types import (
    ALL_SCOPES,
    ANYONE,
    Caller,
    Content,
    Entity,
    Filters,
    InvokeResult,
    JsonObject,
    Kind,
    PromptMessage,
    PromptResult,
    ToolDefinition,
)
from gateway.types.access import NO_ACCESS_RULE
from gateway.types.caller import acting_for
from gateway.types.entities import DEFAULT_STATUSES
from gateway.types.listing import WatchCallbacks

_READABLE: frozenset[Kind] = frozenset({"resource", "skill"})
"""The kinds whose names are addresses at their server."""


@dataclass(eq=False, repr=False)
class ResourceLibrary:
    """The resources and prompts of one gateway.

    Args:
        registry: The sources.
        snapshot: Gives the index as it is now.
        capabilities: What servers may ask clients for.
        hooks: Are told of everything that is read.
    """

    registry: Registry
    snapshot: Callable[[], Awaitable[Snapshot]]
    capabilities: ClientCapabilities
    hooks: CallHook

    def watch(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Call *changed* on any thread when the catalog may differ; give what ends that."""
        return self.registry.watch(changed)

    def holds(self, server: str) -> bool:
        """Whether *server* may have more than tools."""
        return isinstance(self._source(server), ResourceSource)

    def home(self, tool_id: str) -> str:
        """Return the server whose names the answers of a tool hold; empty if it has only tools."""
        server, _, _ = tool_id.partition("/")
        source = self._source(server)
        if isinstance(source, VirtualSource):
            server = source.behind.get(tool_id, "")
        return server if self.holds(server) else ""

    async def entities(self, kind: Kind, *, caller: Caller = ANYONE) -> tuple[Entity, ...]:
        """Return what there is of *kind* and *caller* may see, by address."""
        return (await self.snapshot()).visible(caller.filters(Filters(kinds=frozenset({kind}))))

    async def read(self, resource: str, *, caller: Caller = ANYONE) -> tuple[Content, ...]:
        """Read a resource.

        Args:
            resource: Its id, its address here, or its URI; also one that a template describes.
            caller: The party that reads.

        Raises:
            InvalidRequestError: No server has it, or several do.
            UpstreamError: The server failed.
        """
        owner = await self.owner("resource", resource, caller=caller)
        result = await self.read_contents(owner, caller=caller)
        return tuple(
            Content(type="resource", text=as_text(each.get("text")), data=each)
            for each in as_objects(result.get("contents"))
        )

    async def read_contents(self, owner: tuple[str, str], *, caller: Caller) -> JsonObject:
        """Ask the server of a resource for it; a file of a skill must be as the skill lists it.

        Raises:
            LimitExceededError: A policy allows *caller* no more reads for a while.
            UpstreamError: The server failed, or the file is another.
        """
        return await self._with_hooks("read", owner, caller, {}, partial(self._read, owner, caller))

    async def _read(self, owner: tuple[str, str], caller: Caller) -> JsonObject:
        server, uri = owner
        result = await self._ask("resources/read", owner, {"uri": uri}, caller)
        wanted = canonical_uri(uri)
        for entity in entities_of(await self.snapshot(), server).values():
            files = entity.definition.details.get(FILES) if entity.kind == "skill" else None
            if not isinstance(files, list):
                continue
            listed = [file for file in files if canonical_uri(file["uri"]) == wanted]
            contents = as_objects(result.get("contents"))
            if listed and not all(is_as_listed(each, listed[0]) for each in contents):
                detail = f"{uri!r} is not as its skill lists it: refresh the catalog"
                raise UpstreamError(server, detail, kind="refused")
        # Not before: a digest is of what the server sent.
        return visible_json(result)

    async def prompt(
        self, prompt: str, arguments: Mapping[str, str] | None = None, *, caller: Caller = ANYONE
    ) -> PromptResult:
        """Fill in a prompt.

        Args:
            prompt: Its id, its full name here, or its own name.
            arguments: What it wants, by name.
            caller: The party that asks.

        Raises:
            InvalidRequestError: No server has it, or several do, or it wants other arguments.
            UpstreamError: The server failed.
        """
        owner = await self.owner("prompt", prompt, caller=caller)
        result = await self.fill_prompt(owner, arguments or {}, caller=caller)
        return PromptResult(
            description=as_text(result.get("description")),
            messages=tuple(map(_message, as_objects(result.get("messages")))),
        )

    async def fill_prompt(
        self, owner: tuple[str, str], arguments: Mapping[str, str] | None, *, caller: Caller
    ) -> JsonObject:
        """Ask the server of a prompt to fill it in; None sends no arguments.

        Raises:
            LimitExceededError, UpstreamError: As `read_contents`.
        """
        more = {} if arguments is None else {"arguments": dict(arguments)}
        work = partial(self.ask, "prompts/get", owner, "name", more, caller=caller)
        return await self._with_hooks("prompt", owner, caller, more, work)

    async def _with_hooks(
        self,
        action: Action,
        owner: tuple[str, str],
        caller: Caller,
        arguments: JsonObject,
        work: Callable[[], Awaitable[JsonObject]],
    ) -> JsonObject:
        """Return the answer of *work*, as the hooks around it let it pass."""
        snapshot = await self.snapshot()
        entity = _entity_at(snapshot, "resource" if action == "read" else "prompt", *owner)

        async def send(call: Call) -> InvokeResult:
            return InvokeResult(tool_id=call.entity.id, structured=await work())

        seen = snapshot.visibility
        call = Call(
            action=action, entity=entity, arguments=arguments, caller=caller, visibility=seen
        )
        return as_object((await self.hooks.around(call, send)).structured)

    async def ask(
        self,
        method: str,
        owner: tuple[str, str],
        key: str,
        more: JsonObject | None = None,
        *,
        caller: Caller = ANYONE,
    ) -> JsonObject:
        """Send *method* to the server of a thing, whose own name goes under *key*."""
        params = {key: owner[1], **(more or {})}
        return visible_json(await self._ask(method, owner, params, caller))

    async def _ask(
        self, method: str, owner: tuple[str, str], params: JsonObject, caller: Caller
    ) -> JsonObject:
        with acting_for(caller):
            return await resources_of(self._below(owner[0]), owner[0]).ask(method, params)

    async def complete(
        self, kind: Kind, name: str, params: JsonObject, *, caller: Caller = ANYONE
    ) -> JsonObject:
        """Ask what an argument of a prompt or of a template may be.

        Args:
            kind: ``prompt`` or ``resource``.
            name: As `read` and `prompt` take it.
            params: ``argument`` and perhaps ``context``, as the protocol writes them.
            caller: The party that asks.
        """
        owner = await self.owner(kind, name, caller=caller)
        prompt = {"type": "ref/prompt", "name": owner[1]}
        ref = prompt if kind == "prompt" else {"type": "ref/resource", "uri": owner[1]}
        more = {**params, "ref": ref}
        return await self.ask("completion/complete", owner, "ref", more, caller=caller)

    async def follow(self, owner: tuple[str, str], callbacks: WatchCallbacks) -> None:
        """Report changes of a resource until cancelled; see `Watchable.watch`."""
        await watchable(self._below(owner[0]), *owner).watch(owner[1], callbacks)

    async def owner(self, kind: Kind, name: str, *, caller: Caller = ANYONE) -> tuple[str, str]:
        """Return the server of a thing, and what it calls that itself.

        The first way that leads anywhere counts:

        1. A resource's address here, also of what is in no list: templates and links lead there.
        2. A thing's id or exposed name, whichever of the two.
        3. What its own server calls it.
        4. A URI that a template describes.

        Where several things are meant they must be one: an alias and what it stands for are.

        Raises:
            InvalidRequestError: No server has it, it is hidden, or it could be any of several.
        """
        placed = from_gateway_uri(kind, name)
        if placed is not None and placed[0] in self.registry and kind == "resource":
            return await self._real_visible(*placed, caller, name)
        matches, exact = candidates(await self.entities(kind, caller=caller), kind, name)
        if not matches:
            raise _missing(kind, name)
        owners = set()
        for each in matches:
            own = each.name if exact else name
            if kind == "resource" and not exact:
                owners.add(await self._real_visible(each.server, own, caller, name))
            else:
                owners.add(await self._real(kind, each.server, own))
        if len(owners) > 1:
            names = ", ".join(sorted(each.exposed_name for each in matches))
            raise InvalidRequestError(f"{kind} {name!r} could be any of {names}: say which")
        return owners.pop()

    async def _real_visible(
        self, server: str, uri: str, caller: Caller, name: str
    ) -> tuple[str, str]:
        """Return what `_real` does, of a resource that may be seen here and where it is."""
        await self._check_visible(server, uri, caller, name)
        real = await self._real("resource", server, uri)
        if real[0] != server:
            await self._check_visible(*real, caller, name)
        return real

    async def _check_visible(self, server: str, uri: str, caller: Caller, name: str) -> None:
        """Refuse a resource if all that the catalog knows of it is hidden, as a file of a skill.

        One that is in no list is refused as well where the caller lacks the scopes of a resource of
        its server, or of all that it has: else the refusal would tell which of the two it is.

        Other spellings of a URI are refused with it, since its server may read them as one.
        """
        snapshot = await self.snapshot()
        # Entries are called by their ids; their namespace may be the name of a server.
        known = entities_of(snapshot, server)
        own = {
            at: each
            for at, each in known.items()
            if each.exposed_name != each.id or FRONT in each.definition.details
        }
        filters = Filters(kinds=SERVER_KINDS.union(each.kind for each in own.values()))
        seen = snapshot.mask(caller.filters(filters))
        entity = _entity_at(snapshot, "resource", server, uri)
        is_denied = snapshot.visibility.decide(entity, caller).action == "deny"
        names = {at: each.name for at, each in own.items() if each.kind in _READABLE}
        if described := described_by(names, uri):
            is_open = all(seen[positions].any() for positions in described)
        else:
            every = frozenset({ALL_SCOPES})
            in_use = snapshot.mask(replace(filters, scopes=every, unrestricted=True))
            # A server may have nothing that is listed.
            itself = [at for at, each in known.items() if each.id == f"{each.kind}:{server}"]
            registration = self.registry.all().get(server)
            access = registration.access if registration else NO_ACCESS_RULE
            is_shut = access.enabled is False or access.status not in {None, *DEFAULT_STATUSES}
            is_shut |= not caller.holds(access.scopes) or not seen[itself].all()
            is_shut |= bool(own and not seen[[*own]].any())
            is_open = not (in_use[[*names]] & ~seen[[*names]]).any() and not is_shut
        if not is_open or is_denied:
            raise _missing("resource", name)

    async def _real(self, kind: Kind, server: str, name: str) -> tuple[str, str]:
        """Return the server and its own name of what is shown as *name*, or of what an alias means.

        An alias is of the server's own name already, whatever its transforms show.
        """
        source = self._source(server)
        if _configured(source):
            return server, source.original_name(kind, name)
        if not isinstance(source, VirtualSource):
            return server, name
        await self.snapshot()
        matches = source.resolve(kind, name)
        if matches is None:
            raise InvalidRequestError(f"virtual server {server!r} has no {kind} {name!r}")
        return matches

    def _source(self, server: str) -> Source | None:
        registration = self.registry.all().get(server)
        return registration.source if registration is not None else None

    def _below(self, server: str) -> Source | None:
        """Return the source that `owner` gives names of."""
        source = self._source(server)
        return source.inner if _configured(source) else source


def _configured(source: Source | None) -> TypeGuard[TransformedSource]:
    """Whether the transforms are those of a server; to the host's own source they belong."""
    return isinstance(source, TransformedSource) and isinstance(source.inner, CachedSource)


def _entity_at(snapshot: Snapshot, kind: Kind, server: str, name: str) -> Entity:
    """Return the entity that policies are asked about, also about one that is in no list."""
    key = entity_id(kind, server, name)
    if (place := snapshot.eligibility.by_id.get(key)) is not None:
        return snapshot.entities[place]
    definition = ToolDefinition(name=name, kind=kind)
    return Entity(id=key, kind=kind, exposed_name=key, server=server, definition=definition)


def _missing(kind: Kind, name: str) -> InvalidRequestError:
    listing = f'gateway.library.entities("{kind}")'
    return InvalidRequestError(f"no server has the {kind} {name!r}: list them ({listing})")


def _message(raw: JsonObject) -> PromptMessage:
    data = as_object(raw.get("content"))
    inner = as_object(data.get("resource")) or data
    content = Content(type=as_text(data.get("type")), text=as_text(inner.get("text")), data=data)
    return PromptMessage(role=as_text(raw.get("role")), content=content)
