"""Where resources and prompts of many servers are found under one roof. Pure and reversible.

* A resource's address is ``gateway:/SERVER/URI`` with the server's own URI as it is: what a client
  makes of a template's address is the address of what it would make of the template.
* A server itself has the id ``server:NAME`` or ``virtual_server:NAME``.
* A prompt is called ``SERVER/NAME``. No server's name holds a slash.
"""

from __future__ import annotations

from gateway.types import Kind

SCHEME = "gateway:/"


_SERVERS = frozenset({"server", "virtual_server"})


def thing_id(kind: Kind, server: str, name: str) -> str:
    """Give the catalog's id of what is no tool; no tool has such a one: see `check_server_name`.

    ``kind:server/name``; ``kind:name`` of a server itself.
    """
    itself = kind in _SERVERS and server == name
    return f"{kind}:{name}" if itself else f"{kind}:{server}/{name}"


def placed(kind: Kind, server: str, name: str) -> str:
    """Give the address of a resource, the full name of a prompt; of anything else its id."""
    if kind == "resource":
        return f"{SCHEME}{server}/{name}"
    return f"{server}/{name}" if kind == "prompt" else thing_id(kind, server, name)


def origin(kind: Kind, address: str) -> tuple[str, str] | None:
    """Give the server, and its own name of what `placed` gave; None if that gave no such thing."""
    if kind == "resource":
        if not address.startswith(SCHEME):
            return None
        address = address.removeprefix(SCHEME)
    server, slash, name = address.partition("/")
    return (server, name) if server and slash else None
