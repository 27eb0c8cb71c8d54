"""Names of what the catalog holds: ids, addresses, and the names that a model may call. Pure.

* A tool's id is ``server/name``, that of all else ``kind:server/name``, with the source's own name:
  it never changes. A server itself has the id ``server:NAME`` or ``virtual_server:NAME``.
* A resource's URI is ``gateway:/SERVER/URI`` with the server's own URI as it is: what a client
  makes of a template's URI is the URI of what it would make of the template. A prompt is called
  ``SERVER/NAME``. No server's name holds a slash, so both lead back.
* An exposed name is at most 64 characters of ``[A-Za-z0-9_-]`` (OpenAI's rule for functions). It
  depends only on which tools there are and on which of them held it before, never on the order in
  which they are registered. No two are equal, even without case.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from itertools import count

from gateway.types import Kind, ToolDefinition

SCHEME = "gateway:/"
SERVER_KINDS = frozenset({"server", "virtual_server"})
"""The kinds of entities that have tools."""
MAX_NAME = 64
_PLAIN_NAME = re.compile(rf"[A-Za-z0-9](?:[A-Za-z0-9_-]{{0,{MAX_NAME - 2}}}[A-Za-z0-9])?")
"""A name that is exposed as it is; nearly all are."""
_NO_HOLDERS: Mapping[str, str] = {}
_UNPINNED = frozenset({"search_text", "open_world"})
_LOOKALIKES = str.maketrans(
    "\u0430\u0432\u0435\u043a\u043c\u043d\u043e\u0440\u0441\u0442\u0443\u0445\u0455\u0456\u0458\u04bb\u0501"
    "\u051b\u051d\u03b1\u03b7\u03b9\u03ba\u03bd\u03bf\u03c1\u03c4\u03c5i10",
    "abekmhopctyxsljhdqwanlkvoptullo",
)
"""Small letters of Cyrillic and Greek, and digits, that look like a Latin letter."""


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
    own_names: Mapping[str, str],
    *,
    reserved: frozenset[str] = frozenset(),
    holders: Mapping[str, str] = _NO_HOLDERS,
    first: Collection[str] = (),
) -> dict[str, str]:
    """Return the exposed name of each tool, by id.

    A tool gets its own name if that is free, else ``server_name``, else a readable prefix with a
    hash of its id. A name that was held before is free only for its holder. Of tools that want the
    same free name the first gets it: those of *first*, then the others, in the order of their ids.

    Args:
        own_names: What its server calls each tool, by id.
        reserved: Names that no tool may have, such as the meta-tools'.
        holders: The id of the tool that holds a name, by the name without case.
        first: The ids of tools whose names the host itself gave or vouches for.
    """
    used = {name.casefold() for name in reserved}
    names = dict(own_names)
    for key in sorted(own_names, key=lambda key: (key not in first, key)):
        for name in _candidates(key, own_names[key]):
            folded = name.casefold()
            if folded not in used and holders.get(folded, key) == key:
                used.add(folded)
                names[key] = name
                break
    return names


def _candidates(key: str, name: str) -> Iterator[str]:
    """Yield the names that a tool may get, the best first; they never end."""
    yield plain_name(name, key)
    qualified = plain_name(f"{key.removesuffix(f'/{name}')}_{name}", key)
    yield qualified
    yield _hashed(qualified, key, 8)
    # A server may call a tool by such a hash: then the next one is free.
    yield from (_hashed(qualified, f"{step} {key}", 64) for step in count())


def similar_names(own_names: Mapping[str, str]) -> tuple[tuple[str, ...], ...]:
    """Return groups of tools of different servers whose names differ, but hardly to the eye.

    They differ in case, underscores or hyphens, in letters of another script, or in a plural.

    Args:
        own_names: What its server calls each tool, by id.

    Returns:
        The ids of each group, sorted; the groups by their ids.
    """
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for key, name in own_names.items():
        groups[_skeleton(name)].append(key)
    return tuple(
        sorted(
            tuple(sorted(keys))
            for skeleton, keys in groups.items()
            if len(keys) > 1
            and skeleton
            and len({own_names[key] for key in keys}) > 1
            and len({key.removesuffix(f"/{own_names[key]}") for key in keys}) > 1
        )
    )


@lru_cache(maxsize=1 << 16)
def _skeleton(name: str) -> str:
    """Return what stays of a name without all that is easily overlooked."""
    folded = unicodedata.normalize("NFKC", name).casefold().translate(_LOOKALIKES)
    return "".join(word.rstrip("s") or word for word in re.split(r"[\W_]+", folded))


def plain_name(name: str, key: str) -> str:
    """Return the name that a tool gets if no other holds it."""
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

    The search text is left out: it is the host's, and approvals of the definition outlive it. So is
    whether it reaches the open world, which only policies read. The order of JSON keys does not
    matter; the order of lists does.
    """
    hints = definition.hints
    whole: dict[str, object] = {
        "server": server,
        "name": definition.name,
        "title": definition.title,
        "description": definition.description,
        "input": definition.input_schema,
        "output": definition.output_schema,
        "hints": {name: getattr(hints, name) for name in hints.__slots__ if name not in _UNPINNED},
    }
    if definition.kind != "tool":
        whole |= {"kind": definition.kind, "details": definition.details}
    text = json.dumps(whole, sort_keys=True, ensure_ascii=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()
