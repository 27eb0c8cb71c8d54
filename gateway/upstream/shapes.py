"""What is shown of a source's tools, as values: which of them, under which names and texts. Pure.

* A shape maps names both ways: what it does not show has no name to call it by.
* Digests and suspicions travel with their tool: whatever it is called, it stays pinned and scanned.
* A rule that meets no tool is told: a misspelt ``deny`` would show what it should hide.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Protocol, TypeVar

from gateway.errors import ConfigError
from gateway.types import Diagnostic, ToolDefinition
from gateway.upstream.source import Listing

T = TypeVar("T")
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")
"""What the protocol recommends for names of tools."""


class Shape(Protocol):
    """What becomes of a listing, and of the names in it."""

    def show(self, listing: Listing, *, server: str) -> Listing:
        """Give what is shown of *listing*, with a diagnostic for what meets nothing.

        Args:
            listing: As its source gave it.
            server: For messages.
        """

    def own(self, name: str) -> str | None:
        """Give the source's own name of what is shown as *name*; None if nothing is."""


@dataclass(frozen=True, slots=True)
class Prefix:
    """Puts *text* before every name."""

    text: str

    def __post_init__(self) -> None:
        """Check that names can begin so."""
        check_tool_name(self.text)

    def show(self, listing: Listing, *, server: str) -> Listing:
        """See `Shape.show`."""
        del server
        return _renamed(listing, lambda name: f"{self.text}{name}")

    def own(self, name: str) -> str | None:
        """See `Shape.own`."""
        return name.removeprefix(self.text) if name.startswith(self.text) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Shows the tools that a pattern of *allow* meets and none of *deny* does.

    Patterns are those of a shell (``get_*``, ``?``, ``[ab]``), compared with case.
    """

    allow: tuple[str, ...] | None = None
    """None is every tool; empty is none."""
    deny: tuple[str, ...] = ()

    def show(self, listing: Listing, *, server: str) -> Listing:
        """See `Shape.show`."""
        names = [tool.name for tool in listing.tools]
        idle = (each for each in (*(self.allow or ()), *self.deny) if not _meets(each, names))
        left = _without(listing, {name for name in names if not self._shows(name)})
        return replace(
            left,
            diagnostics=(
                *listing.diagnostics,
                *(_note(f"{server!r}: no tool is called like {each!r}") for each in idle),
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
    """Shows tools under other names. One that had such a name itself gives way, and that is told.

    Args:
        names: New name by the source's own.

    Raises:
        ConfigError: If two tools would get one name, or a name is none.
    """

    names: Mapping[str, str]

    def __post_init__(self) -> None:
        """Check the new names."""
        for name, count in Counter(self.names.values()).items():
            check_tool_name(name)
            if count > 1:
                raise ConfigError(f"rename: {count} tools would be called {name!r}")

    def show(self, listing: Listing, *, server: str) -> Listing:
        """See `Shape.show`."""
        have = {tool.name for tool in listing.tools}
        hidden = have.intersection(self.names.values()) - self.names.keys()
        gone = sorted(old for old in self.names if old not in have)
        return replace(
            _renamed(_without(listing, hidden), lambda name: self.names.get(name, name)),
            diagnostics=(
                *listing.diagnostics,
                *(_note(f"{server!r}: no tool {each!r} is there to be renamed") for each in gone),
                *(
                    _note(f"{server!r}: tool {each!r} is hidden: another was given its name")
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
    """Shows other descriptions, by the source's own name of the tool."""

    texts: Mapping[str, str] = field(default_factory=dict)

    def show(self, listing: Listing, *, server: str) -> Listing:
        """See `Shape.show`."""
        gone = sorted(self.texts.keys() - {tool.name for tool in listing.tools})
        return replace(
            listing,
            tools=tuple(self._described(tool) for tool in listing.tools),
            diagnostics=(
                *listing.diagnostics,
                *(_note(f"{server!r}: no tool {each!r} is there to be described") for each in gone),
            ),
        )

    def own(self, name: str) -> str | None:
        """See `Shape.own`."""
        return name

    def _described(self, tool: ToolDefinition) -> ToolDefinition:
        text = self.texts.get(tool.name)
        return tool if text is None else replace(tool, description=text)


def shown(listing: Listing, shapes: Iterable[Shape], *, server: str) -> Listing:
    """Give what *shapes*, one after another, show of *listing*."""
    for shape in shapes:
        listing = shape.show(listing, server=server)
    return listing


def own_name(name: str, shapes: Iterable[Shape]) -> str | None:
    """Give the source's own name of what *shapes* show as *name*; None if nothing is."""
    found: str | None = name
    for shape in reversed(tuple(shapes)):
        found = None if found is None else shape.own(found)
    return found


def check_tool_name(name: str) -> str:
    """Give *name* back if a tool may be called so.

    Raises:
        ConfigError: It is empty, too long, or holds other characters.
    """
    if not _NAME.fullmatch(name):
        raise ConfigError(
            f"tool name {name!r} cannot be used: take 1 to 128 letters, digits, '_', '.' or '-'"
        )
    return name


def _renamed(listing: Listing, new: Callable[[str], str]) -> Listing:
    names = {tool.name: new(tool.name) for tool in listing.tools}

    def table(given: Mapping[str, T]) -> dict[str, T]:
        return {names.get(name, name): value for name, value in given.items()}

    return replace(
        listing,
        tools=tuple(replace(tool, name=names[tool.name]) for tool in listing.tools),
        digests=table(listing.digests),
        suspicions=table(listing.suspicions),
    )


def _without(listing: Listing, hidden: AbstractSet[str]) -> Listing:
    def table(given: Mapping[str, T]) -> dict[str, T]:
        return {name: value for name, value in given.items() if name not in hidden}

    return replace(
        listing,
        tools=tuple(tool for tool in listing.tools if tool.name not in hidden),
        digests=table(listing.digests),
        suspicions=table(listing.suspicions),
    )


def _meets(pattern: str, names: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for name in names)


def _note(detail: str) -> Diagnostic:
    return Diagnostic(stage="catalog", code="config_warning", detail=detail)
