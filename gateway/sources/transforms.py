"""Changes of what is shown of a source: prefix, filter, rename, describe. Pure but for the source.

    TransformedSource(source, Filter(deny=("delete_*",)), Prefix("crm_"))

* A transform is for one kind: tools, unless it says otherwise. Resources keep their URIs, which
  lead back to their server; a virtual server gives them others.
* A transform maps names both ways: what it does not show has no name to call or read it by.
* Digests and suspicions travel with their definition: under any name, it stays pinned and scanned.
* A rule that matches nothing leaves a diagnostic: a misspelt ``deny`` would show what it should
  hide.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from fnmatch import fnmatchcase
from typing import TypeVar

from gateway.errors import ConfigError, InvalidRequestError
from gateway.mcp.naming import check_tool_name, pin_key, request_target, retarget_request
from gateway.sources.protocol import ResourceSource, Source, Transform, Watchable, unknown_tool
from gateway.types import Diagnostic, InvokeResult, JsonObject, Kind, ToolDefinition
from gateway.types.listing import Listing, WatchCallbacks

T = TypeVar("T")
_RENAMABLE: frozenset[Kind] = frozenset({"tool", "prompt"})
"""The kinds whose names mean nothing but what they are called by."""


@dataclass(frozen=True, slots=True)
class Prefix:
    """Puts *text* before every name.

    Raises:
        ConfigError: If no name can begin so, or it is for resources.
    """

    text: str
    _: KW_ONLY
    kind: Kind = "tool"
    """``tool`` or ``prompt``."""

    def __post_init__(self) -> None:
        """Check that names can begin so."""
        check_tool_name(self.text)
        _check_renamable(self.kind)

    def apply(self, listing: Listing, *, server: str) -> Listing:
        """See `Transform.apply`."""
        del server
        return _rename(listing, self.kind, lambda name: f"{self.text}{name}")

    def original_name(self, name: str) -> str | None:
        """See `Transform.original_name`."""
        return name.removeprefix(self.text) if name.startswith(self.text) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Shows what a pattern of *allow* matches and none of *deny* does.

    Patterns are those of a shell (``get_*``, ``?``, ``[ab]``), compared with case. Resources are
    matched by their URIs, and so is what is made of a template: end the pattern of one with ``*``.
    """

    allow: tuple[str, ...] | None = None
    """None is everything of that kind; empty is nothing."""
    deny: tuple[str, ...] = ()
    kind: Kind = "tool"

    def apply(self, listing: Listing, *, server: str) -> Listing:
        """See `Transform.apply`."""
        names = [definition.name for definition in _definitions(listing, self.kind)]
        hidden = {name for name in names if not self._is_shown(name)}
        return _with_notes(
            _remove(listing, self.kind, hidden),
            (
                f"{server!r}: no {self.kind} is called like {pattern!r}"
                for pattern in (*(self.allow or ()), *self.deny)
                if not any(fnmatchcase(name, pattern) for name in names)
            ),
        )

    def original_name(self, name: str) -> str | None:
        """See `Transform.original_name`."""
        return name if self._is_shown(name) else None

    def _is_shown(self, name: str) -> bool:
        is_allowed = self.allow is None or any(fnmatchcase(name, rule) for rule in self.allow)
        return is_allowed and not any(fnmatchcase(name, rule) for rule in self.deny)


@dataclass(frozen=True, slots=True)
class Rename:
    """Shows definitions under other names. One that has such a name itself is hidden, with a note.

    Args:
        names: New name by the source's own.

    Raises:
        ConfigError: If two would get one name, a name is none, or it is for resources.
    """

    names: Mapping[str, str]
    _: KW_ONLY
    kind: Kind = "tool"
    """``tool`` or ``prompt``."""

    def __post_init__(self) -> None:
        """Check the new names."""
        _check_renamable(self.kind)
        for name, count in Counter(self.names.values()).items():
            check_tool_name(name)
            if count > 1:
                raise ConfigError(f"rename: {count} {self.kind}s would be called {name!r}")

    def apply(self, listing: Listing, *, server: str) -> Listing:
        """See `Transform.apply`."""
        present = {definition.name for definition in _definitions(listing, self.kind)}
        hidden = present.intersection(self.names.values()) - self.names.keys()
        left = _remove(listing, self.kind, hidden)
        return _with_notes(
            _rename(left, self.kind, lambda name: self.names.get(name, name)),
            (
                *_missing(self.names, present, self.kind, server, "renamed"),
                *(
                    f"{server!r}: {self.kind} {name!r} is hidden: another was given its name"
                    for name in sorted(hidden)
                ),
            ),
        )

    def original_name(self, name: str) -> str | None:
        """See `Transform.original_name`."""
        for old, new in self.names.items():
            if new == name:
                return old
        return None if name in self.names else name


@dataclass(frozen=True, slots=True)
class Describe:
    """Shows other descriptions, by the source's own name or URI."""

    texts: Mapping[str, str] = field(default_factory=dict)
    _: KW_ONLY
    kind: Kind = "tool"

    def apply(self, listing: Listing, *, server: str) -> Listing:
        """See `Transform.apply`."""
        present = {definition.name for definition in _definitions(listing, self.kind)}

        def describe(definition: ToolDefinition) -> ToolDefinition:
            text = self.texts.get(definition.name)
            return definition if text is None else replace(definition, description=text)

        return _with_notes(
            _map_definitions(listing, self.kind, describe),
            _missing(self.texts, present, self.kind, server, "described"),
        )

    def original_name(self, name: str) -> str | None:
        """See `Transform.original_name`."""
        return name


def apply_transforms(listing: Listing, transforms: Iterable[Transform], *, server: str) -> Listing:
    """Return *listing* as *transforms*, one after another, show it."""
    for transform in transforms:
        listing = transform.apply(listing, server=server)
    return listing


def original_name(name: str, transforms: Iterable[Transform], *, kind: Kind = "tool") -> str | None:
    """Return the source's own name of what *transforms* show as *name*; None if nothing is."""
    original: str | None = name
    for transform in reversed([one for one in transforms if one.kind == kind]):
        original = None if original is None else transform.original_name(original)
    return original


class TransformedSource:
    """Shows what *source* has, changed by *transforms* in their order."""

    def __init__(self, source: Source, *transforms: Transform) -> None:
        self._source = source
        self._transforms = transforms

    @property
    def server(self) -> str:
        """The name of the source."""
        return self._source.server

    @property
    def trusted(self) -> bool:
        """Whether the host wrote the definitions, but for what the transforms change."""
        return self._source.trusted

    async def list_tools(self) -> Listing:
        """Return what is shown; see `Source.list_tools`."""
        listing = await self._source.list_tools()
        return apply_transforms(listing, self._transforms, server=self.server)

    async def call(self, tool: str, arguments: JsonObject, *, tool_id: str) -> InvokeResult:
        """Call what is shown as *tool*; see `Source.call`."""
        original = original_name(tool, self._transforms)
        if original is None:
            return unknown_tool(tool_id, tool)
        return await self._source.call(original, arguments, tool_id=tool_id)

    async def ask(self, method: str, params: JsonObject) -> JsonObject:
        """Ask the source for a resource or prompt that is shown; see `ResourceSource.ask`."""
        if not isinstance(self._source, ResourceSource):
            raise InvalidRequestError(f"server {self.server!r} has no resources and no prompts")
        original = self.original_name(*request_target(params))
        return await self._source.ask(method, retarget_request(params, original))

    async def watch(self, uri: str, callbacks: WatchCallbacks) -> None:
        """Report changes of a resource that is shown; see `Watchable.watch`."""
        if not isinstance(self._source, Watchable):
            raise InvalidRequestError(f"server {self.server!r} reports no changes of {uri!r}")
        await self._source.watch(self.original_name("resource", uri), callbacks)

    async def close(self) -> None:
        """Close the source."""
        await self._source.close()

    @property
    def inner(self) -> Source:
        """The source itself, under whose own names everything is there."""
        return self._source

    def original_name(self, kind: Kind, name: str) -> str:
        """Return the source's own name of what is shown as *name*.

        Raises:
            InvalidRequestError: Nothing is.
        """
        original = original_name(name, self._transforms, kind=kind)
        if original is None:
            raise InvalidRequestError(f"server {self.server!r} shows no {kind} {name!r}: list them")
        return original


def _check_renamable(kind: Kind) -> None:
    if kind not in _RENAMABLE:
        raise ConfigError(
            f"a {kind} keeps its URI here; a virtual server can show it under another one"
        )


def _definitions(listing: Listing, kind: Kind) -> Iterable[ToolDefinition]:
    if kind == "tool":
        return listing.tools
    return (definition for definition in listing.things if definition.kind == kind)


def _map_definitions(
    listing: Listing, kind: Kind, change: Callable[[ToolDefinition], ToolDefinition | None]
) -> Listing:
    """Return *listing* with *change* applied to all of a kind; None leaves one out."""

    def change_all(definitions: Iterable[ToolDefinition]) -> tuple[ToolDefinition, ...]:
        changed = (change(one) if one.kind == kind else one for one in definitions)
        return tuple(one for one in changed if one is not None)

    if kind == "tool":
        return replace(listing, tools=change_all(listing.tools))
    return replace(listing, things=change_all(listing.things))


def _rename(listing: Listing, kind: Kind, rename: Callable[[str], str]) -> Listing:
    names = {one.name: rename(one.name) for one in _definitions(listing, kind)}
    keys = {pin_key(kind, old): pin_key(kind, new) for old, new in names.items()}
    renamed = _map_definitions(listing, kind, lambda one: replace(one, name=names[one.name]))
    return _map_keys(renamed, lambda key: keys.get(key, key))


def _remove(listing: Listing, kind: Kind, names: set[str]) -> Listing:
    keys = {pin_key(kind, name) for name in names}
    left = _map_definitions(listing, kind, lambda one: None if one.name in names else one)
    return _map_keys(left, lambda key: None if key in keys else key)


def _map_keys(listing: Listing, change: Callable[[str], str | None]) -> Listing:
    def table(pins: Mapping[str, T]) -> dict[str, T]:
        return {key: value for old, value in pins.items() if (key := change(old)) is not None}

    return replace(listing, digests=table(listing.digests), suspicions=table(listing.suspicions))


def _missing(
    names: Iterable[str], present: set[str], kind: Kind, server: str, action: str
) -> Iterable[str]:
    missing = sorted(name for name in names if name not in present)
    return (f"{server!r}: no {kind} {name!r} is there to be {action}" for name in missing)


def _with_notes(listing: Listing, details: Iterable[str]) -> Listing:
    notes = (Diagnostic(stage="catalog", code="config_warning", detail=text) for text in details)
    return replace(listing, diagnostics=(*listing.diagnostics, *notes))
