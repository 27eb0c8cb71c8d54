"""Virtual servers as they are written: names for things of others, each with a text of its own."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from gateway.errors import ConfigError
from gateway.mcp.naming import check_server_name, check_tool_name
from gateway.sources.aliases import check_alias
from gateway.types import Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Alias:
    """Another name for a tool, a resource or a prompt.

    Raises:
        ConfigError: If *of* is no ``server/name``.
    """

    of: str
    """The thing: ``server/name``, by the server's own name or URI of it."""
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
        """Whose thing it is."""
        return self.of.partition("/")[0]

    @property
    def name(self) -> str:
        """The server's own name of it."""
        return self.of.partition("/")[2]


def aliases(given: Mapping[str, str | Alias]) -> dict[str, Alias]:
    """Give the aliases of *given*, where a text is one of ``server/name``."""
    return {name: Alias(of=of) if isinstance(of, str) else of for name, of in given.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class VirtualServer:
    """What a virtual server offers.

    Raises:
        ConfigError: If a name cannot be used.
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
        for name in self.tools:
            check_tool_name(name)
        for kind, name, alias in self.things:
            check_alias(kind, name, alias.name)

    @property
    def servers(self) -> frozenset[str]:
        """Whose things it shows."""
        things = (alias for _, _, alias in self.things)
        return frozenset(alias.server for alias in (*self.tools.values(), *things))

    @property
    def things(self) -> Iterator[tuple[Kind, str, Alias]]:
        """Each resource and prompt that it shows: its kind, its alias, and what that is."""
        for name, alias in self.resources.items():
            yield "resource", name, alias
        for name, alias in self.prompts.items():
            yield "prompt", name, alias

    @property
    def fingerprint(self) -> str:
        """SHA-256 (hex) of its table."""
        table = {name: alias.of for name, alias in self.tools.items()}
        more = [[kind, name, alias.of] for kind, name, alias in self.things]
        whole = [self.name, table, *more]
        return hashlib.sha256(json.dumps(whole).encode()).hexdigest()
