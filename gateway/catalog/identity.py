"""Names of what the catalog holds: ids, addresses, and the names that a model may call. Pure.

* A tool's id is ``server/name``, that of all else ``kind:server/name``, with the source's own name:
  it never changes. A server itself has the id ``server:NAME`` or ``virtual_server:NAME``.
* A resource's URI is ``gateway:/SERVER/URI`` with the server's own URI as it is: what a client
  makes of a template's URI is the URI of what it would make of the template. A prompt is called
  ``SERVER/NAME``. No server's name holds a slash, so both lead back.
* An exposed name is at most 64 characters of ``[A-Za-z0-9_-]`` (OpenAI's rule for functions). It
  depends only on which tools there are, never on the order in which they came. No two are equal,
  even without case.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Mapping

from gateway.types import Kind, ToolDefinition

SCHEME = "gateway:/"
SERVER_KINDS = frozenset({"server", "virtual_server"})
"""The kinds of entities that have tools."""
MAX_NAME = 64
_PLAIN_NAME = re.compile(rf"[A-Za-z0-9](?:[A-Za-z0-9_-]{{0,{MAX_NAME - 2}}}[A-Za-z0-9])?")
"""A name that is exposed as it is; nearly all are."""


def entity_id(kind: Kind, server: str, name: str) -> str:
    """Return the catalog's id of what a source lists; see `check_server_name` for why no two meet.

    ``server/name`` of a tool, ``kind:server/name`` of all else, ``kind:name`` of a server itself.
    """
    if kind == "tool":
        return f"{server}/{name}"
    if kind in SERVER_KINDS and server == name:
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


def expose_names(
    own_names: Mapping[str, str], *, reserved: frozenset[str] = frozenset()
) -> dict[str, str]:
    """Return the exposed name of each tool, by id.

    A tool gets its own name if no other tool wants that, else ``server_name``, else a readable
    prefix with a hash of its id. Tools that want the same name all give it up, so that the outcome
    does not depend on which came first.

    Args:
        own_names: What its server calls each tool, by id.
        reserved: Names that no tool may have, such as the meta-tools'.
    """
    names = {key: _fit(name, key) for key, name in own_names.items()}
    unavailable = [name.casefold() for name in reserved]
    steps: Counter[str] = Counter()
    while True:
        wanted = Counter(map(str.casefold, names.values()))
        refused = {name for name, count in wanted.items() if count > 1}.union(unavailable)
        clashing = [key for key, name in names.items() if name.casefold() in refused]
        if not clashing:
            return names
        for key in clashing:
            names[key] = _qualify(key, own_names[key], steps[key])
            steps[key] += 1


def _qualify(key: str, name: str, step: int) -> str:
    qualified = _fit(f"{key.removesuffix(f'/{name}')}_{name}", key)
    # The longest is a whole SHA-256: distinct for distinct ids.
    return _hashed(qualified, key, 8 if step == 1 else 64) if step else qualified


def _fit(name: str, key: str) -> str:
    if _PLAIN_NAME.fullmatch(name):
        return name
    plain = re.sub(r"[^A-Za-z0-9_-]+", "_", name).strip("_-")
    if not plain:
        return _hashed("tool", key, 8)
    return plain if len(plain) <= MAX_NAME else _hashed(plain, key, 8)


def _hashed(name: str, key: str, length: int) -> str:
    digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:length]
    return f"{name[: MAX_NAME - length - 1]}_{digest}" if length < MAX_NAME else digest


def definition_digest(server: str, definition: ToolDefinition) -> str:
    """Return the SHA-256 (hex) of all that a search or a call reads of a definition.

    The order of JSON keys does not matter; the order of lists does.
    """
    hints = definition.hints
    whole: dict[str, object] = {
        "server": server,
        "name": definition.name,
        "title": definition.title,
        "description": definition.description,
        "input": definition.input_schema,
        "output": definition.output_schema,
        "hints": {name: getattr(hints, name) for name in hints.__slots__},
    }
    if definition.kind != "tool":
        whole |= {"kind": definition.kind, "details": definition.details}
    text = json.dumps(whole, sort_keys=True, ensure_ascii=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()
