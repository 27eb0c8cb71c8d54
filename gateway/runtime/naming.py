"""How servers and what they offer are named: in pins, in requests, in answers. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from urllib.parse import quote, unquote_to_bytes

from gateway.errors import ConfigError
from gateway.types import JsonObject, Kind

MAX_NAME_CHARS = 128
MAX_TITLE_CHARS = 200
MAX_URI_CHARS = 2000
_NAME = re.compile(r"[A-Za-z0-9_.-]+")
"""What the protocol recommends for names of tools."""
_FOREIGN = re.compile(r"[^A-Za-z0-9_.-]+")
_ESCAPES = re.compile(r"(?:%[0-9A-Fa-f]{2})+")
_ESCAPED = frozenset(":/?#[]@!$&'()*+,;=%{}")
"""Characters that mean something else where they are not escaped."""
_PARTS = re.compile(r"((?:[A-Za-z][A-Za-z0-9+.-]*:)?(?://[^/?#]*)?)([^?#]*)")
"""Scheme and authority of a URI, and its path."""


def to_server_name(name: str) -> str:
    """Return the name that a server called *name* in another client has here."""
    return _FOREIGN.sub("-", name).strip("-.")[:64] or "server"


def check_tool_name(name: str) -> str:
    """Return *name* if a tool may be called so.

    Raises:
        ConfigError: It is empty, too long, or holds other characters.
    """
    return _check_name("tool", name, 128)


def check_server_name(name: str) -> str:
    """Return *name* if a server may be called so.

    Raises:
        ConfigError: It is empty, too long, or holds other characters.
    """
    return _check_name("server", name, 64)


def _check_name(kind: str, name: str, max_chars: int) -> str:
    if not isinstance(name, str) or not _NAME.fullmatch(name) or len(name) > max_chars:
        raise ConfigError(
            f"{kind} name {name!r} cannot be used: take 1 to {max_chars} letters, digits, "
            "'_', '.' or '-'"
        )
    return name


def canonical_uri(uri: str) -> str:
    """Return the one spelling of all URIs that are equal by their syntax (RFC 3986, 6.2.2).

    It is for comparing alone: servers are asked for what the client wrote. A template keeps its
    expressions.
    """
    return _PARTS.sub(lambda parts: parts[1].lower() + parts[2], normalize_path(uri), count=1)


def normalize_path(uri: str) -> str:
    """Return *uri* without escapes that it does not need, and without dot segments.

    The case of scheme and authority stays, so that patterns match as they are written.
    """
    return _PARTS.sub(_without_dots, _ESCAPES.sub(_unescape, uri), count=1)


def _unescape(escapes: re.Match[str]) -> str:
    text = unquote_to_bytes(escapes[0]).decode("utf-8", "surrogateescape")
    return "".join(
        char
        if char.isprintable() and char not in _ESCAPED
        else quote(char, safe="", errors="surrogateescape")
        for char in text
    )


def _without_dots(parts: re.Match[str]) -> str:
    segments: list[str] = []
    for segment in parts[2].split("/"):
        if segment == ".." and segments not in ([], [""]):
            segments.pop()
        elif segment not in {".", ".."}:
            segments.append(segment)
    if parts[2].endswith(("/.", "/..")):
        segments.append("")
    return parts[1] + "/".join(segments)


def matches_template(template: str, uri: str) -> bool:
    """Whether *uri* may have been made from a URI template (RFC 6570).

    Only the fixed parts are compared, in their order: linear, whatever a server writes there.
    """
    first, *expressions = template.split("{")
    if not uri.startswith(first):
        return False
    position = len(first)
    fixed = [part.partition("}")[2] for part in expressions]
    for part in fixed[:-1]:
        index = uri.find(part, position)
        if index < 0:
            return False
        position = index + len(part)
    last = fixed[-1] if fixed else ""
    return uri.endswith(last) and len(uri) - len(last) >= position and bool(fixed or uri == first)


def request_target(params: JsonObject) -> tuple[Kind, str]:
    """Return the kind and the name of what a request is for; see `ResourceSource.ask`."""
    ref = params.get("ref")
    target = ref if isinstance(ref, Mapping) else params
    kind: Kind = "resource" if "uri" in target else "prompt"
    name = target.get("uri" if kind == "resource" else "name")
    return kind, name if isinstance(name, str) else ""


def retarget_request(params: JsonObject, name: str) -> JsonObject:
    """Return the same request, for what is called *name*."""
    ref = params.get("ref")
    if isinstance(ref, Mapping):
        return {**params, "ref": retarget_request(ref, name)}
    return {**params, "uri" if "uri" in params else "name": name}


def rewrite_block_uri(block: JsonObject, rewrite: Callable[[str], str]) -> JsonObject:
    """Return a block of content with the URI of what it names, or holds, as *rewrite* writes it."""
    resource = block.get("resource")
    if isinstance(resource, Mapping):
        return {**block, "resource": rewrite_uri(resource, rewrite)}
    return rewrite_uri(block, rewrite) if block.get("type") == "resource_link" else block


def rewrite_uri(item: JsonObject, rewrite: Callable[[str], str]) -> JsonObject:
    """Return *item* with its URI as *rewrite* writes it.

    An address of the web stays: a reader knows the way.
    """
    uri = item.get("uri")
    if not isinstance(uri, str) or uri.startswith(("http://", "https://", "data:")):
        return item
    return {**item, "uri": rewrite(uri)}
