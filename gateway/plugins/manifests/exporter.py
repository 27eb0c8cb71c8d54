"""Export of selected entities as ``mcp.json``: servers, or a virtual server.

Secrets in the configuration are replaced by references to variables.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from gateway.config.config_file import server_table
from gateway.config.json_edit import parse_object
from gateway.errors import InvalidRequestError
from gateway.plugins.manifests.client_files import Conversion, RequiredVariable
from gateway.runtime.json_schema import as_object
from gateway.runtime.naming import to_server_name
from gateway.runtime.secret_scanner import Span, find_in_arguments, find_secret, looks_random
from gateway.sources.virtual import VirtualServer, aliases
from gateway.types import Entity, JsonObject

_ITEM_FIELDS = frozenset(("tools", "prompts", "resources"))
"""Keys that only list a server's items, so their values contain no secrets."""
_REFERENCE = re.compile(r"\$\{([^}]*?)(?::-([^}]*))?\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerExport:
    """Servers exported from a configuration."""

    document: JsonObject
    """Content of an ``mcp.json``."""
    variables: tuple[RequiredVariable, ...] = ()
    """Variables for the secrets, which must be set where the export is used."""
    missing: tuple[str, ...] = ()
    """Requested names that the configuration lacks."""


def servers_of(entities: Iterable[Entity]) -> frozenset[str]:
    """Return the servers of *entities*."""
    return frozenset(entity.server for entity in entities)


def export_servers(text: str, names: Collection[str], *, where: str) -> ServerExport:
    """Export servers and virtual servers, with the upstreams of the latter.

    Args:
        text: Configuration, an ``mcp.json``.
        names: Names of the servers and virtual servers.
        where: Path of the file, for messages.

    Raises:
        ConfigError: If *text* is not a valid ``mcp.json``.
    """
    _, table = server_table(text, where=where)
    virtual = as_object(parse_object(text, where=where).get("virtualServers"))
    virtual_entries = {name: entry for name, entry in virtual.items() if name in names}
    required = {
        *names,
        *(server for entry in virtual_entries.values() for server in _upstreams(entry)),
    }
    conversion = Conversion()
    servers = {
        name: _without_secrets(conversion, name, entry)
        for name, entry in table.items()
        if to_server_name(name) in required
    }
    document: dict[str, object] = {"mcpServers": servers}
    if virtual_entries:
        document["virtualServers"] = virtual_entries
    exported = {*map(to_server_name, servers), *virtual_entries}
    return ServerExport(
        document=document,
        variables=tuple(conversion.required),
        missing=tuple(sorted(required - exported)),
    )


def export_virtual_server(
    name: str, entities: Iterable[Entity], original: Callable[[Entity], tuple[str, str]]
) -> JsonObject:
    """Export the tools among *entities* as the entry of a virtual server, keyed by exposed name.

    Args:
        name: Name of the virtual server.
        entities: Entities of the catalog. Only tools of servers are used.
        original: Function that returns the server of a tool, and the tool's name there.

    Raises:
        ConfigError: If the name is not valid.
        InvalidRequestError: If *entities* do not contain a tool.
    """
    tools = {
        entity.exposed_name: "/".join(original(entity))
        for entity in entities
        if entity.kind == "tool" and not entity.described
    }
    if not tools:
        raise InvalidRequestError("a virtual server shows tools: choose at least one")
    table = VirtualServer(name=name, tools=aliases(tools))
    return {"virtualServers": {table.name: {"tools": dict(sorted(tools.items()))}}}


def _upstreams(entry: object) -> Iterable[str]:
    """Yield the servers whose items a virtual server contains."""
    for kind in ("tools", "resources", "prompts"):
        for alias in as_object(as_object(entry).get(kind)).values():
            target = as_object(alias).get("tool") if isinstance(alias, dict) else alias
            yield str(target).partition("/")[0]


def _without_secrets(conversion: Conversion, server: str, entry: object) -> object:
    members = as_object(entry).items()
    return {
        key: value if key in _ITEM_FIELDS else _mask(conversion, server, key, key, value)
        for key, value in members
    }


def _mask(conversion: Conversion, server: str, where: str, name: str, value: object) -> object:
    """Return *value*, a field of an entry, with references for secrets."""
    if isinstance(value, dict):
        return {
            key: _mask(conversion, server, f"{where}.{key}", key, item)
            for key, item in value.items()
        }
    if isinstance(value, str):
        text = _without_defaults(value)
        return _hide_secrets(conversion, server, where, text, name, _find_secret(name, text))
    if not isinstance(value, list):
        return value
    texts = [_without_defaults(str(item)) for item in value]
    spans = {position: (flag, span) for position, flag, span in find_in_arguments(texts)}
    return [
        _hide_secrets(
            conversion,
            server,
            f"{where}[{position}]",
            text,
            *spans.get(position, ("", _find_secret("", text))),
        )
        for position, text in enumerate(texts)
    ]


def _hide_secrets(
    conversion: Conversion, server: str, where: str, text: str, name: str, secret: Span | None
) -> str:
    """Return *text* with *secret*, and all other secrets, replaced by references."""
    while secret is not None:
        text = conversion.hide(server, where, text, name, secret)
        secret = _find_secret(name, text)
    return text


def _without_defaults(text: str) -> str:
    """Return *text* without secret-looking defaults of references (``${NAME:-default}``)."""

    def plain(match: re.Match[str]) -> str:
        default = match[2]
        return f"${{{match[1]}}}" if default and find_secret("secret", default) else match[0]

    return _REFERENCE.sub(plain, text)


def _find_secret(name: str, text: str) -> Span | None:
    """Return start and end of a secret in *text*, or None.

    References are not secrets. A text without references that looks random is a secret.
    """
    spaced = _REFERENCE.sub(lambda match: " " * len(match[0]), text)
    if spaced != text:
        return find_secret("", spaced)
    return find_secret(name, text) or ((0, len(text)) if looks_random(text) else None)
