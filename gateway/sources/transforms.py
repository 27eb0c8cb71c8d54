"""Transforms of a source's listing: prefix, filter, rename, describe.

    TransformedSource(source, Filter(deny=("delete_*",)), Prefix("crm_"))

A rule that matches no item causes a diagnostic, because a misspelt ``deny`` exposes a tool.
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
"""Kind and name of a definition."""
Owner: TypeAlias = tuple[str, str]
"""Name of a source, and the source's own name of a definition."""


_KEYED_FIELDS = ("digests", "suspicions", "access", "originals")
"""Fields of a `Listing` that are mappings keyed by `pin_key`."""
_EMPTY_LISTING = Listing()


def select(
    listings: Mapping[str, Listing], owners: Mapping[Key, Owner], whole: Listing = _EMPTY_LISTING
) -> Listing:
    """Return the definitions in *owners*, taken from *listings*, under their new names.

    Digests, suspicions and access rules stay with their definition.

    Args:
        listings: Listings, keyed by source.
        owners: Owner of each definition, keyed by its new name, in the order of the result.
        whole: Listing from which the result takes its other fields, such as instructions.
    """
    listed = {
        (source, item.kind, item.name): item
        for source, listing in listings.items()
        for item in listing.definitions
    }
    definitions: list[ToolDefinition] = []
    parts: dict[str, Any] = {part: {} for part in _KEYED_FIELDS}
    for (kind, name), (source, original) in owners.items():
        item = listed.get((source, kind, original))
        if item is None:
            continue
        definitions.append(item if name == original else replace(item, name=name))
        own_key = pin_key(kind, original)
        for part, selected in parts.items():
            values = getattr(listings[source], part)
            if own_key in values:
                selected[pin_key(kind, name)] = values[own_key]
    return replace(whole, definitions=tuple(definitions), **parts)


@dataclass(frozen=True, slots=True)
class Prefix:
    """Adds a prefix to the name of every tool or prompt.

    Raises:
        ConfigError: If the prefix is not valid in a name, or *kind* is ``resource``.
    """

    text: str
    _: KW_ONLY
    kind: Kind = "tool"

    def __post_init__(self) -> None:
        check_tool_name(self.text)
        _check_renamable(self.kind)

    def apply(self, listing: Listing, *, server: str) -> Listing:
        """Return *listing* with prefixed names."""
        del server
        return _rename(listing, self.kind, lambda name: f"{self.text}{name}", ())

    def original_name(self, name: str) -> str | None:
        """Return *name* without the prefix; None if missing."""
        return name.removeprefix(self.text) if name.startswith(self.text) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Hides items whose name matches no pattern of *allow*, or a pattern of *deny*.

    Patterns are case-sensitive shell patterns (``get_*``, ``?``, ``[ab]``). Resources are matched
    by their URIs, including URIs made from a template, so a pattern for a template should end with
    ``*``. Percent-encoding has no effect: ``%73ecret`` is the same as ``secret``.
    """

    allow: tuple[str, ...] | None = None
    """Patterns of allowed names; None allows all items of the kind, and an empty tuple none."""
    deny: tuple[str, ...] = ()
    kind: Kind = "tool"

    def apply(self, listing: Listing, *, server: str) -> Listing:
        """Return the allowed items, and a diagnostic for each pattern without a match."""
        names = _names_of_kind(listing, self.kind)
        notes = (
            f"{server!r}: no {self.kind} matches {pattern!r}"
            for pattern in (*(self.allow or ()), *self.deny)
            if not any(fnmatchcase(name, pattern) for name in names)
        )
        return _rename(listing, self.kind, self.original_name, notes)

    def original_name(self, name: str) -> str | None:
        """Return *name* if it is allowed, else None."""
        forms = (normalize_path, canonical_uri, str) if self.kind == "resource" else (str,)
        is_allowed = self.allow is None or any(
            _matches_pattern(name, rule, forms[:1]) for rule in self.allow
        )
        is_denied = any(_matches_pattern(name, rule, forms) for rule in self.deny)
        return name if is_allowed and not is_denied else None


def _matches_pattern(name: str, rule: str, forms: Iterable[Callable[[str], str]]) -> bool:
    return any(fnmatchcase(form(name), form(rule)) for form in forms)


@dataclass(frozen=True, slots=True)
class Rename:
    """Gives tools or prompts other names.

    If a new name is already the name of another item, that other item is hidden.

    Args:
        names: New names, keyed by the source's own names.

    Raises:
        ConfigError: If a new name is invalid or used twice, or *kind* is ``resource``.
    """

    names: Mapping[str, str]
    _: KW_ONLY
    kind: Kind = "tool"

    def __post_init__(self) -> None:
        _check_renamable(self.kind)
        for name, count in Counter(self.names.values()).items():
            check_tool_name(name)
            if count > 1:
                raise ConfigError(f"rename: {count} {self.kind}s would be called {name!r}")

    def apply(self, listing: Listing, *, server: str) -> Listing:
        """Return *listing* with the new names, and diagnostics for missing and hidden items."""
        names = _names_of_kind(listing, self.kind)
        hidden = names.intersection(self.names.values()) - self.names.keys()
        notes = (
            *_missing_notes(self.names, names, self.kind, server, "renamed"),
            *(
                f"{server!r}: {self.kind} {name!r} is hidden: another {self.kind} got its name"
                for name in sorted(hidden)
            ),
        )

        def rename(name: str) -> str | None:
            return None if name in hidden else self.names.get(name, name)

        return _rename(listing, self.kind, rename, notes)

    def original_name(self, name: str) -> str | None:
        """Return the source's own name of the item exposed as *name*; None if not exposed."""
        for old, new in self.names.items():
            if new == name:
                return old
        return None if name in self.names else name


@dataclass(frozen=True, slots=True)
class Describe:
    """Replaces the descriptions of items. *texts* has the new ones, keyed by own name or URI."""

    texts: Mapping[str, str] = field(default_factory=dict)
    _: KW_ONLY
    kind: Kind = "tool"

    def apply(self, listing: Listing, *, server: str) -> Listing:
        """Return *listing* with the new descriptions, and a diagnostic for each missing item."""
        missing = _missing_notes(
            self.texts, _names_of_kind(listing, self.kind), self.kind, server, "described"
        )
        definitions = (
            replace(item, description=self.texts[item.name])
            if item.kind == self.kind and item.name in self.texts
            else item
            for item in listing.definitions
        )
        return _with_notes(replace(listing, definitions=tuple(definitions)), missing)

    def original_name(self, name: str) -> str | None:
        """Return *name* unchanged."""
        return name


class TransformedSource:
    """A source whose listing is changed by *transforms*, in their order.

    Example:
        >>> import asyncio
        >>> from gateway.sources import FunctionSource
        >>> functions = FunctionSource()
        >>> tool = functions.add(lambda: 1, name="get_user", description="Get a user.")
        >>> source = TransformedSource(functions, Prefix("crm_"))
        >>> [tool.name for tool in asyncio.run(source.list_tools()).tools]
        ['crm_get_user']
    """

    def __init__(self, source: Source, *transforms: Transform) -> None:
        self.inner = source
        self.server = source.server
        self._transforms = transforms

    @property
    def trusted(self) -> bool:
        """True if the host wrote the original definitions."""
        return self.inner.trusted

    async def list_tools(self) -> Listing:
        """See `Source.list_tools`."""
        listing = await self.inner.list_tools()
        for transform in self._transforms:
            listing = transform.apply(listing, server=self.server)
        return listing

    async def call(self, tool: str, arguments: JsonObject, *, tool_id: str) -> InvokeResult:
        """Call the tool exposed as *tool*. See `Source.call`."""
        try:
            original = self.original_name("tool", tool)
        except InvalidRequestError:
            return unknown_tool(tool_id, tool)
        return await self.inner.call(original, arguments, tool_id=tool_id)

    async def ask(self, method: str, params: JsonObject) -> JsonObject:
        """Ask for an exposed resource or prompt. See `ResourceSource.ask`."""
        source = resources_of(self.inner, self.server)
        original = self.original_name(*request_target(params))
        return await source.ask(method, retarget_request(params, original))

    async def watch(self, uri: str, callbacks: WatchCallbacks) -> None:
        """See `Watchable.watch`."""
        source = watchable(self.inner, self.server, uri)
        await source.watch(self.original_name("resource", uri), callbacks)

    async def close(self) -> None:
        """Close the original source."""
        await self.inner.close()

    def original_name(self, kind: Kind, name: str) -> str:
        """Return the source's own name of the item exposed as *name*.

        Raises:
            InvalidRequestError: If no such item is exposed.
        """
        original: str | None = name
        for transform in reversed(self._transforms):
            if transform.kind == kind and original is not None:
                original = transform.original_name(original)
        if original is None:
            raise InvalidRequestError(
                f"server {self.server!r} does not expose {kind} {name!r}: list the available ones"
            )
        return original


def _check_renamable(kind: Kind) -> None:
    if kind not in {"tool", "prompt"}:
        raise ConfigError(
            f"a {kind} keeps its URI here; a virtual server can show it under another one"
        )


def _names_of_kind(listing: Listing, kind: Kind) -> set[str]:
    return {item.name for item in listing.definitions if item.kind == kind}


def _rename(
    listing: Listing, kind: Kind, rename: Callable[[str], str | None], notes: Iterable[str]
) -> Listing:
    owners: dict[Key, Owner] = {}
    for item in listing.definitions:
        name = rename(item.name) if item.kind == kind else item.name
        if name is not None:
            owners[item.kind, name] = "", item.name
    return _with_notes(select({"": listing}, owners, listing), notes)


def _missing_notes(
    names: Iterable[str], present: set[str], kind: Kind, server: str, action: str
) -> Iterable[str]:
    missing = sorted(name for name in names if name not in present)
    reason = f"cannot be {action}, because it does not exist"
    return (f"{server!r}: {kind} {name!r} {reason}" for name in missing)


def _with_notes(listing: Listing, details: Iterable[str]) -> Listing:
    notes = (Diagnostic(stage="catalog", code="config_warning", detail=text) for text in details)
    return replace(listing, diagnostics=(*listing.diagnostics, *notes))
