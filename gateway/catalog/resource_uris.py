"""The ids and URIs of what servers have besides tools. Pure and reversible.

* A resource's URI is ``gateway:/SERVER/URI`` with the server's own URI as it is: what a client
  makes of a template's URI is the URI of what it would make of the template.
* A server itself has the id ``server:NAME`` or ``virtual_server:NAME``.
* A prompt is called ``SERVER/NAME``. No server's name holds a slash.
"""

from __future__ import annotations

from gateway.types import Kind

SCHEME = "gateway:/"

_SERVER_KINDS = frozenset({"server", "virtual_server"})


def entity_id(kind: Kind, server: str, name: str) -> str:
    """Return the catalog's id of what is no tool; see `check_server_name` for why no tool has it.

    ``kind:server/name``; ``kind:name`` of a server itself.
    """
    if kind in _SERVER_KINDS and server == name:
        return f"{kind}:{name}"
    return f"{kind}:{server}/{name}"


def to_gateway_uri(kind: Kind, server: str, name: str) -> str:
    """Return the URI of a resource, the full name of a prompt, and the id of anything else."""
    if kind == "resource":
        return f"{SCHEME}{server}/{name}"
    return f"{server}/{name}" if kind == "prompt" else entity_id(kind, server, name)


def from_gateway_uri(kind: Kind, uri: str) -> tuple[str, str] | None:
    """Return the server and its own name of what `to_gateway_uri` named; None for anything else."""
    if kind == "resource":
        if not uri.startswith(SCHEME):
            return None
        uri = uri.removeprefix(SCHEME)
    server, slash, name = uri.partition("/")
    return (server, name) if server and slash else None
