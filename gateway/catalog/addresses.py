"""Where resources and prompts of many servers are found under one roof. Pure and reversible.

* A resource's address is ``gateway:/SERVER/URI`` with the server's own URI as it is: what a client
  makes of a template's address is the address of what it would make of the template.
* A prompt is called ``SERVER/NAME``. No server's name holds a slash.
"""

from __future__ import annotations

from gateway.types import Kind

SCHEME = "gateway:/"


def thing_id(kind: Kind, server: str, name: str) -> str:
    """Give the catalog's id of what is no tool; no tool has such a one: see `check_server_name`."""
    return f"{kind}:{server}/{name}"


def placed(kind: Kind, server: str, name: str) -> str:
    """Give the address of a resource, the full name of a prompt."""
    return f"{SCHEME if kind == 'resource' else ''}{server}/{name}"


def origin(kind: Kind, address: str) -> tuple[str, str] | None:
    """Give the server, and its own name of what `placed` gave; None if that gave no such thing."""
    if kind == "resource":
        if not address.startswith(SCHEME):
            return None
        address = address.removeprefix(SCHEME)
    server, slash, name = address.partition("/")
    return (server, name) if server and slash else None


def fits(template: str, uri: str) -> bool:
    """Whether *uri* may have been made from a URI template (RFC 6570).

    Only the fixed parts are compared, in their order: linear, whatever a server writes there.
    """
    first, *rest = template.split("{")
    if not uri.startswith(first):
        return False
    at = len(first)
    fixed = [part.partition("}")[2] for part in rest]
    for part in fixed[:-1]:
        found = uri.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    last = fixed[-1] if fixed else ""
    return uri.endswith(last) and len(uri) - len(last) >= at and bool(fixed or uri == first)
