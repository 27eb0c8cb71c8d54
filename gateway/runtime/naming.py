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
"""Characters that MCP recommends for tool names."""
_FOREIGN = re.compile(r"[^A-Za-z0-9_.-]+")
_ESCAPES = re.compile(r"(?:%[0-9A-Fa-f]{2})+")
_ESCAPED = frozenset(":/?#[]@!$&'()*+,;=%{}")
"""Characters that stay percent-encoded in a canonical URI, because they have another meaning."""
_PARTS = re.compile(r"((?:[A-Za-z][A-Za-z0-9+.-]*:)?(?://[^/?#]*)?)([^?#]*)")
"""Pattern with two groups: scheme and authority of a URI, and its path."""


def to_server_name(name: str) -> str:
    """Return a valid server name for a server that another client calls *name*."""
    return _FOREIGN.sub("-", name).strip("-.")[:64] or "server"


def check_tool_name(name: str) -> str:
    """Return *name* if it is a valid tool name.

    Raises:
        ConfigError: If the name is empty, too long or has other characters.
    """
    return _check_name("tool", name, 128)


def check_server_name(name: str) -> str:
    """Return *name* if it is a valid server name.

    Raises:
        ConfigError: If the name is empty, too long or has other characters.
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
    """Return the canonical form of *uri* (RFC 3986, 6.2.2), equal for all equivalent URIs.

    Use it only for comparisons, not in requests. Expressions of a URI template do not change.
    """
    return _PARTS.sub(lambda parts: parts[1].lower() + parts[2], normalize_path(uri), count=1)


def normalize_path(uri: str) -> str:
    """Return *uri* without unnecessary escapes and dot segments.

    Scheme and authority keep their case, so that patterns of the host match as they are written.
    """
    return _PARTS.sub(_remove_dots, _ESCAPES.sub(_unescape, uri), count=1)


def _unescape(escapes: re.Match[str]) -> str:
    text = unquote_to_bytes(escapes[0]).decode("utf-8", "surrogateescape")
    return "".join(
        char
        if char.isprintable() and char not in _ESCAPED
        else quote(char, safe="", errors="surrogateescape")
        for char in text
    )


def _remove_dots(parts: re.Match[str]) -> str:
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
    """Return whether *uri* may be an expansion of a URI template (RFC 6570).

    Only the fixed parts of the template are compared, in linear time.
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
    """Return the kind and name ("" if missing) of the resource or prompt that *params* name."""
    ref = params.get("ref")
    target = ref if isinstance(ref, Mapping) else params
    kind: Kind = "resource" if "uri" in target else "prompt"
    name = target.get("uri" if kind == "resource" else "name")
    return kind, name if isinstance(name, str) else ""


def retarget_request(params: JsonObject, name: str) -> JsonObject:
    """Return a copy of *params* with *name* as the target."""
    ref = params.get("ref")
    if isinstance(ref, Mapping):
        return {**params, "ref": retarget_request(ref, name)}
    return {**params, "uri" if "uri" in params else "name": name}


def rewrite_block_uri(block: JsonObject, rewrite: Callable[[str], str]) -> JsonObject:
    """Apply *rewrite* to the URI of the resource or link in a content block."""
    resource = block.get("resource")
    if isinstance(resource, Mapping):
        return {**block, "resource": rewrite_uri(resource, rewrite)}
    return rewrite_uri(block, rewrite) if block.get("type") == "resource_link" else block


def rewrite_uri(item: JsonObject, rewrite: Callable[[str], str]) -> JsonObject:
    """Apply *rewrite* to the URI of *item*.

    Web addresses and data URIs do not change, because readers can open them without the gateway.
    """
    uri = item.get("uri")
    if not isinstance(uri, str) or uri.startswith(("http://", "https://", "data:")):
        return item
    return {**item, "uri": rewrite(uri)}
