"""Aliases of resources and prompts: what a name of a virtual server stands for, and back. Pure.

* A resource's alias is a URI of one's own, a prompt's a name.
* The alias of a template ends as the template does, from its first expression on: what stands
  before that is exchanged, so that every URI that is made of one leads to one of the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from gateway.errors import ConfigError
from gateway.mcp.naming import MAX_URI_CHARS, pin_key
from gateway.types import Kind, ToolDefinition
from gateway.types.listing import Listing

MAX_PROMPT_CHARS = 128


def check_alias(kind: Kind, name: str, of: str) -> None:
    """Refuse a name that nothing could be called by.

    Args:
        kind: ``resource`` or ``prompt``.
        name: The alias.
        of: The server's own name of the thing.

    Raises:
        ConfigError: It is empty, too long, holds what nobody can see, is no URI, or ends otherwise
            than the template that it stands for.
    """
    longest = MAX_URI_CHARS if kind == "resource" else MAX_PROMPT_CHARS
    if not name.strip() or len(name) > longest or not name.isprintable():
        raise ConfigError(
            f"{kind} name {name!r} cannot be used: take 1 to {longest} characters that can be seen"
        )
    if kind == "resource" and ":" not in name:
        raise ConfigError(f"the alias of a resource is a URI such as 'docs:today', not {name!r}")
    if kind == "resource" and _tail(name) != _tail(of):
        raise ConfigError(
            f"template {name!r} must end as {of!r} does, from its first expression on"
        )


def meant(aliases: Mapping[str, str], kind: Kind, name: str) -> str | None:
    """Give the ``server/name`` of what is shown as *name*; None if nothing is.

    Args:
        aliases: ``server/name`` by alias.
        kind: ``resource`` or ``prompt``.
        name: An alias, or a URI that was made of the alias of a template.
    """
    if name in aliases or kind != "resource":
        return aliases.get(name)
    heads = {_head(alias): of for alias, of in aliases.items() if _tail(alias)}
    fitting = max((head for head in heads if name.startswith(head)), key=len, default=None)
    if fitting is None:
        return None
    return _head(heads[fitting]) + name.removeprefix(fitting)


def shown_as(
    kind: Kind, alias: str, description: str, listing: Listing, own: str
) -> Iterator[tuple[ToolDefinition, ToolDefinition, tuple[str, ...]]]:
    """Give the thing that *alias* shows, the original, and why that is suspicious, if it is there.

    Args:
        kind: ``resource`` or ``prompt``.
        alias: How it is shown.
        description: Instead of its own; empty leaves that.
        listing: What its server offers.
        own: The server's own name of it.
    """
    for thing in listing.things:
        if thing.kind == kind and thing.name == own:
            told = description or thing.description
            reasons = listing.suspicions.get(pin_key(kind, own), ())
            yield replace(thing, name=alias, description=told), thing, reasons


def _head(template: str) -> str:
    return template.partition("{")[0]


def _tail(template: str) -> str:
    return template[len(_head(template)) :]
