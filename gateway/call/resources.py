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
"""Kinds of entities whose names are URIs that their server can read."""


@dataclass(eq=False, repr=False)
class ResourceLibrary:
    """The resources and prompts of one gateway, and completions of their arguments."""

    registry: Registry
    snapshot: Callable[[], Awaitable[Snapshot]]
    capabilities: ClientCapabilities
    hooks: CallHook

    def watch(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Call *changed* on any thread whenever the catalog may have changed.

        Returns:
            Function that ends these calls.
        """
        return self.registry.watch(changed)

    def has_resources(self, server: str) -> bool:
        """Return whether *server* can also offer resources, prompts or skills."""
        return isinstance(self._source(server), ResourceSource)

    def home(self, tool_id: str) -> str:
        """Return the server of the resources in a tool's results; empty if it has only tools."""
        server, _, _ = tool_id.partition("/")
        source = self._source(server)
        if isinstance(source, VirtualSource):
            server = source.behind.get(tool_id, "")
        return server if self.has_resources(server) else ""

    async def entities(self, kind: Kind, *, caller: Caller = ANYONE) -> tuple[Entity, ...]:
        """Return the entities of *kind* that *caller* may see, sorted by address."""
        return (await self.snapshot()).visible(caller.filters(Filters(kinds=frozenset({kind}))))

    async def read(self, resource: str, *, caller: Caller = ANYONE) -> tuple[Content, ...]:
        """Read a resource and return its contents.

        Args:
            resource: Id, address at the gateway, or URI, which may also match a template.
            caller: The user for whom the resource is read.

        Raises:
            InvalidRequestError: If no server or more than one has the resource.
            LimitExceededError: If a policy allows *caller* no more reads for now.
            UpstreamError: If the server failed.
        """
        owner = await self.owner("resource", resource, caller=caller)
        result = await self.read_contents(owner, caller=caller)
        return tuple(
            Content(type="resource", text=as_text(item.get("text")), data=item)
            for item in as_objects(result.get("contents"))
        )

    async def read_contents(self, owner: tuple[str, str], *, caller: Caller) -> JsonObject:
        """Read the resource of *owner* (server and URI there), and return the server's JSON.

        Raises:
            LimitExceededError: If a policy allows *caller* no more reads for now.
            UpstreamError: If the server failed, or the file of a skill differs from its listing.
        """
        return await self._with_hooks("read", owner, caller, {}, partial(self._read, owner, caller))

    async def _read(self, owner: tuple[str, str], caller: Caller) -> JsonObject:
        server, uri = owner
        result = await self._ask("resources/read", owner, {"uri": uri}, caller)
        canonical = canonical_uri(uri)
        for entity in entities_of(await self.snapshot(), server).values():
            files = entity.definition.details.get(FILES) if entity.kind == "skill" else None
            if not isinstance(files, list):
                continue
            listed = [file for file in files if canonical_uri(file["uri"]) == canonical]
            contents = as_objects(result.get("contents"))
            if listed and not all(is_as_listed(content, listed[0]) for content in contents):
                detail = f"{uri!r} is not as its skill lists it: refresh the catalog"
                raise UpstreamError(server, detail, kind="refused")
        # Cleaned last, because digests are computed from the unchanged contents.
        return visible_json(result)

    async def prompt(
        self, prompt: str, arguments: Mapping[str, str] | None = None, *, caller: Caller = ANYONE
    ) -> PromptResult:
        """Request a prompt with its arguments filled in.

        Args:
            prompt: Id, exposed name, or name at the server.
            arguments: Arguments of the prompt, keyed by name.
            caller: The user for whom the prompt is requested.

        Raises:
            InvalidRequestError: If no server or more than one has the prompt, or arguments are
                wrong.
            LimitExceededError: If a policy allows *caller* no more prompts for now.
            UpstreamError: If the server failed.
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
        """Request the prompt of *owner* (server and name there), and return the server's JSON.

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
        snapshot = await self.snapshot()
        entity = _entity_at(snapshot, "resource" if action == "read" else "prompt", *owner)

        async def send(call: Call) -> InvokeResult:
            return InvokeResult(tool_id=call.entity.id, structured=await work())

        visibility = snapshot.visibility
        call = Call(
            action=action, entity=entity, arguments=arguments, caller=caller, visibility=visibility
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
        """Send a request about the resource or prompt *owner* (server and name there).

        *key* is the parameter of the request for the name, *more* has further parameters.
        """
        params = {key: owner[1], **(more or {})}
        return visible_json(await self._ask(method, owner, params, caller))

    async def _ask(
        self, method: str, owner: tuple[str, str], params: JsonObject, caller: Caller
    ) -> JsonObject:
        with acting_for(caller):
            return await resources_of(self._inner_source(owner[0]), owner[0]).ask(method, params)

    async def complete(
        self, kind: Kind, name: str, params: JsonObject, *, caller: Caller = ANYONE
    ) -> JsonObject:
        """Return the server's JSON with completions for an argument of a prompt or template.

        *kind* and *name* are as for `read` and `prompt`. *params* has ``argument`` and optionally
        ``context``, as in MCP.
        """
        owner = await self.owner(kind, name, caller=caller)
        prompt = {"type": "ref/prompt", "name": owner[1]}
        ref = prompt if kind == "prompt" else {"type": "ref/resource", "uri": owner[1]}
        more = {**params, "ref": ref}
        return await self.ask("completion/complete", owner, "ref", more, caller=caller)

    async def follow(self, owner: tuple[str, str], callbacks: WatchCallbacks) -> None:
        """Report changes of the resource *owner* until cancelled; see `Watchable.watch`."""
        await watchable(self._inner_source(owner[0]), *owner).watch(owner[1], callbacks)

    async def owner(self, kind: Kind, name: str, *, caller: Caller = ANYONE) -> tuple[str, str]:
        """Return the server of a resource or prompt, and its name there.

        *name* is tried in this order:

        1. Address of a resource at the gateway, even if unlisted, because templates and links
           contain it.
        2. Id or exposed name.
        3. Name at its server.
        4. URI that matches a template.

        Several matches must have the same owner, such as an alias and its original.

        Raises:
            InvalidRequestError: If the name is unknown, hidden or ambiguous.
        """
        placed = from_gateway_uri(kind, name)
        if placed is not None and placed[0] in self.registry and kind == "resource":
            return await self._visible_original(*placed, caller, name)
        matches, exact = candidates(await self.entities(kind, caller=caller), kind, name)
        if not matches:
            raise _missing(kind, name)
        owners = set()
        for match in matches:
            source_name = match.name if exact else name
            if kind == "resource" and not exact:
                owners.add(await self._visible_original(match.server, source_name, caller, name))
            else:
                owners.add(await self._original(kind, match.server, source_name))
        if len(owners) > 1:
            names = ", ".join(sorted(match.exposed_name for match in matches))
            raise InvalidRequestError(f"{kind} {name!r} could be any of {names}: say which")
        return owners.pop()

    async def _visible_original(
        self, server: str, uri: str, caller: Caller, name: str
    ) -> tuple[str, str]:
        """Return the `_original` of the resource *uri* if *caller* may see both."""
        await self._check_visible(server, uri, caller, name)
        real = await self._original("resource", server, uri)
        if real[0] != server:
            await self._check_visible(*real, caller, name)
        return real

    async def _check_visible(self, server: str, uri: str, caller: Caller, name: str) -> None:
        """Raise an error with *name* if *caller* may not see the resource *uri* of *server*.

        * A listed resource is visible if an entity that describes it, such as its skill, is
          visible.
        * An unlisted resource might be a hidden one. It is refused if the caller lacks scopes of a
          resource of the server, or sees none of the server's entities.
        * Equivalent spellings of a URI are refused together, because the server may treat them as
          equal.
        """
        snapshot = await self.snapshot()
        # Excludes catalog entries, whose namespace may equal a server's name.
        entities = entities_of(snapshot, server)
        listed = {
            position: member
            for position, member in entities.items()
            if member.exposed_name != member.id or FRONT in member.definition.details
        }
        filters = Filters(kinds=SERVER_KINDS.union(member.kind for member in listed.values()))
        visible = snapshot.mask(caller.filters(filters))
        entity = _entity_at(snapshot, "resource", server, uri)
        is_denied = snapshot.visibility.decide(entity, caller).action == "deny"
        names = {
            position: member.name for position, member in listed.items() if member.kind in _READABLE
        }
        if described := described_by(names, uri):
            is_open = all(visible[positions].any() for positions in described)
        else:
            every = frozenset({ALL_SCOPES})
            in_use = snapshot.mask(replace(filters, scopes=every, unrestricted=True))
            # The server may list nothing else than its own entity.
            itself = [
                position
                for position, member in entities.items()
                if member.id == f"{member.kind}:{server}"
            ]
            registration = self.registry.all().get(server)
            access = registration.access if registration else NO_ACCESS_RULE
            is_shut = access.enabled is False or access.status not in {None, *DEFAULT_STATUSES}
            is_shut |= not caller.holds(access.scopes) or not visible[itself].all()
            is_shut |= bool(listed and not visible[[*listed]].any())
            is_open = not (in_use[[*names]] & ~visible[[*names]]).any() and not is_shut
        if not is_open or is_denied:
            raise _missing("resource", name)

    async def _original(self, kind: Kind, server: str, name: str) -> tuple[str, str]:
        """Return the server and name that the server itself uses for a resource or prompt.

        For an alias, these are its original's, independent of transforms.
        """
        source = self._source(server)
        if _is_configured(source):
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

    def _inner_source(self, server: str) -> Source | None:
        """Return the source, without transforms, that knows the names from `owner`."""
        source = self._source(server)
        return source.inner if _is_configured(source) else source


def _is_configured(source: Source | None) -> TypeGuard[TransformedSource]:
    """Return whether a server's configuration, not the host, gave *source* its transforms."""
    return isinstance(source, TransformedSource) and isinstance(source.inner, CachedSource)


def _entity_at(snapshot: Snapshot, kind: Kind, server: str, name: str) -> Entity:
    """Return the entity that policies check. If it is not in the catalog, create it."""
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
