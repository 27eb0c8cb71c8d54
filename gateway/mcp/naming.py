"""How what a server offers is named: in pins, in requests, in answers. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from gateway.errors import ConfigError
from gateway.types import JsonObject, Kind

MAX_NAME_CHARS = 128
MAX_TITLE_CHARS = 200
MAX_URI_CHARS = 2000
_TOOL_NAME = r"[A-Za-z0-9_.-]{1,128}"
"""What the protocol recommends for names of tools."""


_SERVER_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")


def check_tool_name(name: str) -> str:
    """Give *name* back if a tool may be called so.

    Raises:
        ConfigError: It is empty, too long, or holds other characters.
    """
    if not re.fullmatch(_TOOL_NAME, name):
        raise ConfigError(
            f"tool name {name!r} cannot be used: take 1 to 128 letters, digits, '_', '.' or '-'"
        )
    return name


def check_server_name(name: str) -> str:
    """Give *name* back if a server may be called so.

    Raises:
        ConfigError: It is empty, too long, or holds other characters.
    """
    if not isinstance(name, str) or not _SERVER_NAME.fullmatch(name):
        raise ConfigError(
            f"server name {name!r} cannot be used: take 1 to 64 letters, digits, '_', '.' or '-'"
        )
    return name


def thing_key(kind: Kind, name: str) -> str:
    """Give the name by which pins and suspicions of a thing go, beside those of tools."""
    return f"{kind}:{name}"


def pin_key(kind: Kind, name: str) -> str:
    """Give the name by which pins and suspicions of anything go: a tool's own, or `thing_key`."""
    return name if kind == "tool" else thing_key(kind, name)


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


def asked_of(params: JsonObject) -> tuple[Kind, str]:
    """Give what a request is of, by the name that it goes by there; see `ResourceSource.ask`."""
    ref = params.get("ref")
    told = ref if isinstance(ref, Mapping) else params
    kind: Kind = "resource" if "uri" in told else "prompt"
    name = told.get("uri" if kind == "resource" else "name")
    return kind, name if isinstance(name, str) else ""


def asked_as(params: JsonObject, name: str) -> JsonObject:
    """Give the same request, of what is called *name*."""
    ref = params.get("ref")
    if isinstance(ref, Mapping):
        return {**params, "ref": asked_as(ref, name)}
    return {**params, "uri" if "uri" in params else "name": name}


def addressed(block: JsonObject, new: Callable[[str], str]) -> JsonObject:
    """Give a block of content with the URI of what it names, or holds, as *new* writes it."""
    held = block.get("resource")
    if isinstance(held, Mapping):
        return {**block, "resource": moved(held, new)}
    return moved(block, new) if block.get("type") == "resource_link" else block


def moved(held: JsonObject, new: Callable[[str], str]) -> JsonObject:
    """Give *held* with its URI as *new* writes it.

    An address of the web stays: whoever reads it knows the way.
    """
    uri = held.get("uri")
    if not isinstance(uri, str) or uri.startswith(("http://", "https://", "data:")):
        return held
    return {**held, "uri": new(uri)}
