"""Changes of what is shown of a source: prefix, filter, rename, describe. Pure but for the source.

    TransformedSource(source, Filter(deny=("delete_*",)), Prefix("crm_"))

* A transform is for one kind: tools, unless it says otherwise. Resources keep their URIs, which
  lead back to their server; a virtual server gives them others.
* A transform maps names both ways: what it does not show has no name to call or read it by.
* A rule that matches nothing leaves a diagnostic: a misspelt ``deny`` would show what it should
  hide.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any, TypeAlias

from gateway.errors import ConfigError, InvalidRequestError
from gateway.runtime.naming import (
    canonical_uri,
    check_tool_name,
    normalize_path,
    request_target,
    retarget_request,
)
from gateway.sources.protocol import Source, Transform, resources_of, unknown_tool, watchable
from gateway.types import Diagnostic, InvokeResult, JsonObject, Kind, ToolDefinition
from gateway.types.listing import Listing, WatchCallbacks, pin_key

Key: TypeAlias = tuple[Kind, str]
"""A kind, and a name that is unique in it."""
Owner: TypeAlias = tuple[str, str]
"""A source, and its own name of a definition."""


_PARTS = ("digests", "suspicions", "access", "originals")
"""What a listing holds by `pin_key`."""
_NOTHING = Listing()


def select(
    listings: Mapping[str, Listing], owners: Mapping[Key, Owner], whole: Listing = _NOTHING
) -> Listing:
    """Return the definitions that *owners* names and *listings* holds, under their new names.

    Digests, suspicions and access travel with their definition: under any name, it stays pinned,
    scanned and hidden from the same callers.

    Args:
        listings: By source.
        owners: Where each definition is, in their order.
        whole: What else the listing holds.
    """
    listed = {
        (source, item.kind, item.name): item
        for source, listing in listings.items()
        for item in listing.definitions
    }
    definitions: list[ToolDefinition] = []
    parts: dict[str, Any] = {part: {} for part in _PARTS}
    for (kind, name), (source, original) in owners.items():
        item = listed.get((source, kind, original))
        if item is None:
            continue
        definitions.append(item if name == original else replace(item, name=name))
        own_key = pin_key(kind, original)
        for part, selected in parts.items():
            own = getattr(listings[source], part)
            if own_key in own:
                selected[pin_key(kind, name)] = own[own_key]
    return replace(whole, definitions=tuple(definitions), **parts)


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
        return _rename(listing, self.kind, lambda name: f"{self.text}{name}", ())

    def original_name(self, name: str) -> str | None:
        """See `Transform.original_name`."""
        return name.removeprefix(self.text) if name.startswith(self.text) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Shows what a pattern of *allow* matches and none of *deny* does.

    Patterns are those of a shell (``get_*``, ``?``, ``[ab]``), compared with case. Resources are
    matched by their URIs, and so is what is made of a template: end the pattern of one with ``*``.
    How a URI is spelled does not matter: ``%73ecret`` is ``secret``.
    """

    allow: tuple[str, ...] | None = None
    """None is everything of that kind; empty is nothing."""
    deny: tuple[str, ...] = ()
    kind: Kind = "tool"

    def apply(self, listing: Listing, *, server: str) -> Listing:
        """See `Transform.apply`."""
        names = _names(listing, self.kind)
        notes = (
            f"{server!r}: no {self.kind} is called like {pattern!r}"
            for pattern in (*(self.allow or ()), *self.deny)
            if not any(fnmatchcase(name, pattern) for name in names)
        )
        return _rename(listing, self.kind, self.original_name, notes)

    def original_name(self, name: str) -> str | None:
        """See `Transform.original_name`."""
        forms = (normalize_path, canonical_uri, str) if self.kind == "resource" else (str,)
        is_allowed = self.allow is None or any(_fits(name, rule, forms[:1]) for rule in self.allow)
        is_denied = any(_fits(name, rule, forms) for rule in self.deny)
        return name if is_allowed and not is_denied else None


def _fits(name: str, rule: str, forms: Iterable[Callable[[str], str]]) -> bool:
    return any(fnmatchcase(form(name), form(rule)) for form in forms)


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
        names = _names(listing, self.kind)
        hidden = names.intersection(self.names.values()) - self.names.keys()
        notes = (
            *_missing(self.names, names, self.kind, server, "renamed"),
            *(
                f"{server!r}: {self.kind} {name!r} is hidden: another was given its name"
                for name in sorted(hidden)
            ),
        )

        def rename(name: str) -> str | None:
            return None if name in hidden else self.names.get(name, name)

        return _rename(listing, self.kind, rename, notes)

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
        missing = _missing(self.texts, _names(listing, self.kind), self.kind, server, "described")
        definitions = (
            replace(item, description=self.texts[item.name])
            if item.kind == self.kind and item.name in self.texts
            else item
            for item in listing.definitions
        )
        return _with_notes(replace(listing, definitions=tuple(definitions)), missing)

    def original_name(self, name: str) -> str | None:
        """See `Transform.original_name`."""
        return name


class TransformedSource:
    """Shows what *source* has, changed by *transforms* in their order."""

    def __init__(self, source: Source, *transforms: Transform) -> None:
        self.inner = source
        """The source itself, under whose own names everything is there."""
        self.server = source.server
        self._transforms = transforms

    @property
    def trusted(self) -> bool:
        """Whether the host wrote the definitions, but for what the transforms change."""
        return self.inner.trusted

    async def list_tools(self) -> Listing:
        """Return what is shown; see `Source.list_tools`."""
        listing = await self.inner.list_tools()
        for transform in self._transforms:
            listing = transform.apply(listing, server=self.server)
        return listing

    async def call(self, tool: str, arguments: JsonObject, *, tool_id: str) -> InvokeResult:
        """Call what is shown as *tool*; see `Source.call`."""
        try:
            original = self.original_name("tool", tool)
        except InvalidRequestError:
            return unknown_tool(tool_id, tool)
        return await self.inner.call(original, arguments, tool_id=tool_id)

    async def ask(self, method: str, params: JsonObject) -> JsonObject:
        """Ask the source for a resource or prompt that is shown; see `ResourceSource.ask`."""
        source = resources_of(self.inner, self.server)
        original = self.original_name(*request_target(params))
        return await source.ask(method, retarget_request(params, original))

    async def watch(self, uri: str, callbacks: WatchCallbacks) -> None:
        """Report changes of a resource that is shown; see `Watchable.watch`."""
        source = watchable(self.inner, self.server, uri)
        await source.watch(self.original_name("resource", uri), callbacks)

    async def close(self) -> None:
        """Close the source."""
        await self.inner.close()

    def original_name(self, kind: Kind, name: str) -> str:
        """Return the source's own name of what is shown as *name*.

        Raises:
            InvalidRequestError: Nothing is.
        """
        original: str | None = name
        for transform in reversed(self._transforms):
            if transform.kind == kind and original is not None:
                original = transform.original_name(original)
        if original is None:
            raise InvalidRequestError(f"server {self.server!r} shows no {kind} {name!r}: list them")
        return original


def _check_renamable(kind: Kind) -> None:
    """Raise `ConfigError` for a kind whose names mean more than what they are called by."""
    if kind not in {"tool", "prompt"}:
        raise ConfigError(
            f"a {kind} keeps its URI here; a virtual server can show it under another one"
        )


def _names(listing: Listing, kind: Kind) -> set[str]:
    return {item.name for item in listing.definitions if item.kind == kind}


def _rename(
    listing: Listing, kind: Kind, rename: Callable[[str], str | None], notes: Iterable[str]
) -> Listing:
    """Return *listing* with all of a kind under new names; None leaves one out."""
    owners: dict[Key, Owner] = {}
    for item in listing.definitions:
        name = rename(item.name) if item.kind == kind else item.name
        if name is not None:
            owners[item.kind, name] = "", item.name
    return _with_notes(select({"": listing}, owners, listing), notes)


def _missing(
    names: Iterable[str], present: set[str], kind: Kind, server: str, action: str
) -> Iterable[str]:
    missing = sorted(name for name in names if name not in present)
    return (f"{server!r}: no {kind} {name!r} is there to be {action}" for name in missing)


def _with_notes(listing: Listing, details: Iterable[str]) -> Listing:
    notes = (Diagnostic(stage="catalog", code="config_warning", detail=text) for text in details)
    return replace(listing, diagnostics=(*listing.diagnostics, *notes))
