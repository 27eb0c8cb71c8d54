"""Virtual servers as they are written: names for items of other servers, each with its own text.

* A resource's alias is a URI of one's own, a prompt's a name.
* The alias of a template ends as the template does, from its first expression on: what stands
  before that is exchanged, so that every URI that is made of one leads to one of the other.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from gateway.errors import ConfigError
from gateway.mcp.naming import MAX_URI_CHARS, check_server_name, check_tool_name
from gateway.types import Kind

MAX_PROMPT_CHARS = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Alias:
    """Another name for a tool, a resource or a prompt.

    Raises:
        ConfigError: *of* is no ``server/name``.
    """

    of: str
    """The item: ``server/name``, by the server's own name or URI of it."""
    description: str = ""
    """Shown instead of its own; empty leaves that."""
    pin: str = ""
    """SHA-256 (hex) of the definition that it was made for; empty pins the first one seen."""

    def __post_init__(self) -> None:
        """Check what it stands for."""
        if not (self.server and self.name):
            raise ConfigError(
                "an alias stands for one thing of one server, written server/URI, server/prompt "
                f"or server/tool, not {self.of!r}"
            )

    @property
    def server(self) -> str:
        """The server that has the item."""
        return self.of.partition("/")[0]

    @property
    def name(self) -> str:
        """The server's own name of it."""
        return self.of.partition("/")[2]


def aliases(table: Mapping[str, str | Alias]) -> dict[str, Alias]:
    """Return the aliases of *table*, where a text is one of ``server/name``."""
    return {name: Alias(of=of) if isinstance(of, str) else of for name, of in table.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class VirtualServer:
    """What a virtual server offers.

    Raises:
        ConfigError: A name cannot be used.
    """

    name: str
    tools: Mapping[str, Alias]
    """By the name that is shown, in their order."""
    description: str = ""
    resources: Mapping[str, Alias] = field(default_factory=dict)
    """By the URI that is shown; a template by a template that ends as it does."""
    prompts: Mapping[str, Alias] = field(default_factory=dict)
    """By the name that is shown."""

    def __post_init__(self) -> None:
        """Check the names."""
        check_server_name(self.name)
        for kind, name, alias in self.items:
            _check_alias(kind, name, alias.name)

    @property
    def servers(self) -> frozenset[str]:
        """The servers whose items it shows."""
        return frozenset(alias.server for _, _, alias in self.items)

    @property
    def items(self) -> Iterator[tuple[Kind, str, Alias]]:
        """What it shows: the kind, the name that is shown, and what that stands for."""
        for name, alias in self.tools.items():
            yield "tool", name, alias
        for name, alias in self.resources.items():
            yield "resource", name, alias
        for name, alias in self.prompts.items():
            yield "prompt", name, alias

    @property
    def fingerprint(self) -> str:
        """SHA-256 (hex) of its table."""
        tools = {name: alias.of for name, alias in self.tools.items()}
        others = [[kind, name, alias.of] for kind, name, alias in self.items if kind != "tool"]
        return hashlib.sha256(json.dumps([self.name, tools, *others]).encode()).hexdigest()


def _check_alias(kind: Kind, name: str, of: str) -> None:
    """Raise `ConfigError` for a name by which nothing could be called or read."""
    if kind == "tool":
        check_tool_name(name)
        return
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


def resolve_alias(targets: Mapping[str, str], kind: Kind, name: str) -> str | None:
    """Return the ``server/name`` of what is shown as *name*; None if nothing is.

    Args:
        targets: ``server/name`` by alias.
        kind: ``resource`` or ``prompt``.
        name: An alias, or a URI that was made of the alias of a template.
    """
    if name in targets or kind != "resource":
        return targets.get(name)
    heads = {_head(alias): of for alias, of in targets.items() if _tail(alias)}
    head = max((head for head in heads if name.startswith(head)), key=len, default=None)
    if head is None:
        return None
    return _head(heads[head]) + name.removeprefix(head)


def _head(template: str) -> str:
    return template.partition("{")[0]


def _tail(template: str) -> str:
    return template[len(_head(template)) :]
