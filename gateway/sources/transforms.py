"""What is shown of a source, as values: which things of it, under which names and texts. Pure.

* A shape is for one kind: tools, unless it says otherwise. Resources keep their URIs, which lead
  back to their server; a virtual server gives them others.
* A shape maps names both ways: what it does not show has no name to call or read it by.
* Digests and suspicions travel with their thing: whatever it is called, it stays pinned and
  scanned.
* A rule that meets nothing is told: a misspelt ``deny`` would show what it should hide.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import KW_ONLY, dataclass, field, replace
from fnmatch import fnmatchcase
from typing import TypeVar

from gateway.errors import ConfigError, InvalidRequestError
from gateway.mcp.naming import asked_as, asked_of, check_tool_name, pin_key
from gateway.sources.protocol import ResourceSource, Shape, Source, Watchable, unknown_tool
from gateway.types import Diagnostic, InvokeResult, JsonObject, Kind, ToolDefinition
from gateway.types.listing import Listing, WatchCallbacks

T = TypeVar("T")
_NAMED: frozenset[Kind] = frozenset({"tool", "prompt"})
"""The kinds whose names say nothing but what they are called by."""


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
        _check_named(self.kind)

    def show(self, listing: Listing, *, server: str) -> Listing:
        """See `Shape.show`."""
        del server
        return _renamed(listing, self.kind, lambda name: f"{self.text}{name}")

    def own(self, name: str) -> str | None:
        """See `Shape.own`."""
        return name.removeprefix(self.text) if name.startswith(self.text) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Shows what a pattern of *allow* meets and none of *deny* does.

    Patterns are those of a shell (``get_*``, ``?``, ``[ab]``), compared with case. Resources are
    met by their URIs, and so is what is made of a template: end the pattern of one with ``*``.
    """

    allow: tuple[str, ...] | None = None
    """None is everything of that kind; empty is nothing."""
    deny: tuple[str, ...] = ()
    kind: Kind = "tool"

    def show(self, listing: Listing, *, server: str) -> Listing:
        """See `Shape.show`."""
        names = [each.name for each in _of(listing, self.kind)]
        idle = (each for each in (*(self.allow or ()), *self.deny) if not _meets(each, names))
        left = _without(listing, self.kind, {name for name in names if not self._shows(name)})
        return replace(
            left,
            diagnostics=(
                *listing.diagnostics,
                *(_note(f"{server!r}: no {self.kind} is called like {each!r}") for each in idle),
            ),
        )

    def own(self, name: str) -> str | None:
        """See `Shape.own`."""
        return name if self._shows(name) else None

    def _shows(self, name: str) -> bool:
        allowed = self.allow is None or any(fnmatchcase(name, each) for each in self.allow)
        return allowed and not any(fnmatchcase(name, each) for each in self.deny)


@dataclass(frozen=True, slots=True)
class Rename:
    """Shows things under other names. One that had such a name itself gives way, and that is told.

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
        _check_named(self.kind)
        for name, count in Counter(self.names.values()).items():
            check_tool_name(name)
            if count > 1:
                raise ConfigError(f"rename: {count} {self.kind}s would be called {name!r}")

    def show(self, listing: Listing, *, server: str) -> Listing:
        """See `Shape.show`."""
        have = {each.name for each in _of(listing, self.kind)}
        hidden = have.intersection(self.names.values()) - self.names.keys()
        gone = sorted(old for old in self.names if old not in have)
        return replace(
            _renamed(
                _without(listing, self.kind, hidden),
                self.kind,
                lambda name: self.names.get(name, name),
            ),
            diagnostics=(
                *listing.diagnostics,
                *(
                    _note(f"{server!r}: no {self.kind} {each!r} is there to be renamed")
                    for each in gone
                ),
                *(
                    _note(f"{server!r}: {self.kind} {each!r} is hidden: another was given its name")
                    for each in sorted(hidden)
                ),
            ),
        )

    def own(self, name: str) -> str | None:
        """See `Shape.own`."""
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

    def show(self, listing: Listing, *, server: str) -> Listing:
        """See `Shape.show`."""
        gone = sorted(self.texts.keys() - {each.name for each in _of(listing, self.kind)})
        told = _changed(listing, self.kind, self._described)
        return replace(
            told,
            diagnostics=(
                *listing.diagnostics,
                *(
                    _note(f"{server!r}: no {self.kind} {each!r} is there to be described")
                    for each in gone
                ),
            ),
        )

    def own(self, name: str) -> str | None:
        """See `Shape.own`."""
        return name

    def _described(self, tool: ToolDefinition) -> ToolDefinition:
        text = self.texts.get(tool.name)
        return tool if text is None else replace(tool, description=text)


class Shaped:
    """Shows what *source* has as *shapes*, applied in their order, say."""

    def __init__(self, source: Source, *shapes: Shape) -> None:
        self._source = source
        self._shapes = shapes

    @property
    def server(self) -> str:
        """The name of the source."""
        return self._source.server

    @property
    def trusted(self) -> bool:
        """Whether the host wrote the definitions, but for what the shapes say."""
        return self._source.trusted

    async def list_tools(self) -> Listing:
        """Give what is shown; see `Source.list_tools`."""
        return shown(await self._source.list_tools(), self._shapes, server=self.server)

    async def call(self, tool: str, arguments: JsonObject, *, tool_id: str) -> InvokeResult:
        """Call what is shown as *tool*; see `Source.call`."""
        own = own_name(tool, self._shapes)
        if own is None:
            return unknown_tool(tool_id, tool)
        return await self._source.call(own, arguments, tool_id=tool_id)

    async def ask(self, method: str, params: JsonObject) -> JsonObject:
        """Ask the source for a resource or prompt that is shown; see `ResourceSource.ask`."""
        if not isinstance(self._source, ResourceSource):
            raise InvalidRequestError(f"server {self.server!r} has no resources and no prompts")
        own = self.own(*asked_of(params))
        return await self._source.ask(method, asked_as(params, own))

    async def watch(self, uri: str, heard: WatchCallbacks) -> None:
        """Tell *heard* of changes of a resource that is shown; see `Watchable.watch`."""
        if not isinstance(self._source, Watchable):
            raise InvalidRequestError(f"server {self.server!r} tells of no changes of {uri!r}")
        await self._source.watch(self.own("resource", uri), heard)

    async def close(self) -> None:
        """Close the source."""
        await self._source.close()

    @property
    def below(self) -> Source:
        """The source itself, under whose own names everything is there."""
        return self._source

    def own(self, kind: Kind, name: str) -> str:
        """Give the source's own name of what is shown as *name*.

        Raises:
            InvalidRequestError: Nothing is.
        """
        own = own_name(name, self._shapes, kind=kind)
        if own is None:
            raise InvalidRequestError(f"server {self.server!r} shows no {kind} {name!r}: list them")
        return own


def shown(listing: Listing, shapes: Iterable[Shape], *, server: str) -> Listing:
    """Give what *shapes*, one after another, show of *listing*."""
    for shape in shapes:
        listing = shape.show(listing, server=server)
    return listing


def own_name(name: str, shapes: Iterable[Shape], *, kind: Kind = "tool") -> str | None:
    """Give the source's own name of what *shapes* show as *name*; None if nothing is."""
    found: str | None = name
    for shape in reversed([each for each in shapes if each.kind == kind]):
        found = None if found is None else shape.own(found)
    return found


def _check_named(kind: Kind) -> None:
    if kind not in _NAMED:
        raise ConfigError(
            f"a {kind} keeps its URI here; a virtual server can show it under another one"
        )


def _of(listing: Listing, kind: Kind) -> Iterable[ToolDefinition]:
    if kind == "tool":
        return listing.tools
    return (each for each in listing.things if each.kind == kind)


def _changed(
    listing: Listing, kind: Kind, change: Callable[[ToolDefinition], ToolDefinition | None]
) -> Listing:
    """Give *listing* with what *change* makes of all of a kind; None leaves it out."""

    def every(given: Iterable[ToolDefinition]) -> tuple[ToolDefinition, ...]:
        made = (change(each) if each.kind == kind else each for each in given)
        return tuple(each for each in made if each is not None)

    if kind == "tool":
        return replace(listing, tools=every(listing.tools))
    return replace(listing, things=every(listing.things))


def _renamed(listing: Listing, kind: Kind, new: Callable[[str], str]) -> Listing:
    names = {each.name: new(each.name) for each in _of(listing, kind)}
    keys = {pin_key(kind, old): pin_key(kind, name) for old, name in names.items()}

    def table(given: Mapping[str, T]) -> dict[str, T]:
        return {keys.get(key, key): value for key, value in given.items()}

    told = _changed(listing, kind, lambda each: replace(each, name=names[each.name]))
    return replace(told, digests=table(listing.digests), suspicions=table(listing.suspicions))


def _without(listing: Listing, kind: Kind, hidden: AbstractSet[str]) -> Listing:
    keys = {pin_key(kind, name) for name in hidden}

    def table(given: Mapping[str, T]) -> dict[str, T]:
        return {key: value for key, value in given.items() if key not in keys}

    left = _changed(listing, kind, lambda each: None if each.name in hidden else each)
    return replace(left, digests=table(listing.digests), suspicions=table(listing.suspicions))


def _meets(pattern: str, names: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for name in names)


def _note(detail: str) -> Diagnostic:
    return Diagnostic(stage="catalog", code="config_warning", detail=detail)
