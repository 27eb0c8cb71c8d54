"""Ids, URIs and exposed names of entities. Pure.

* A resource's URI is ``gateway:/SERVER/URI``, with the server's own URI unchanged, so that clients
  can expand templates. A prompt is called ``SERVER/NAME``. Server names contain no slash.
* An exposed name is the name by which models call a tool. It has at most 64 characters of
  ``[A-Za-z0-9_-]`` (OpenAI's rule for functions), and is unique even without case. The first
  tool with a name keeps it. Among tools that arrive together, the order has no effect.
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
"""Kinds of entities that have tools."""
MAX_NAME = 64
_PLAIN_NAME = re.compile(rf"[A-Za-z0-9](?:[A-Za-z0-9_-]{{0,{MAX_NAME - 2}}}[A-Za-z0-9])?")
"""Pattern of names that are exposed unchanged unless they are reserved or another tool has them."""
_NO_HOLDERS: Mapping[str, str] = {}
_UNPINNED = frozenset({"search_text", "open_world"})
_LOOKALIKES = str.maketrans(
    "\u0430\u0432\u0435\u043a\u043c\u043d\u043e\u0440\u0441\u0442\u0443\u0445\u0455\u0456\u0458\u04bb\u0501"
    "\u051b\u051d\u03b1\u03b7\u03b9\u03ba\u03bd\u03bf\u03c1\u03c4\u03c5i10",
    "abekmhopctyxsljhdqwanlkvoptullo",
)
"""Latin letters for digits, and for small Cyrillic and Greek letters, that look like them."""


def entity_id(kind: Kind, server: str, name: str) -> str:
    """Return the id of an entity that a source lists.

    The id is ``server/name`` for a tool, ``kind:name`` for a server itself, and
    ``kind:server/name`` for other entities. It is unique because of `check_server_name`.
    """
    if kind == "tool":
        return f"{server}/{name}"
    if kind in SERVER_KINDS and server == name:
        return f"{kind}:{name}"
    return f"{kind}:{server}/{name}"


def to_gateway_uri(kind: Kind, server: str, name: str) -> str:
    """Return the URI of a resource, the full name of a prompt, or the id of another entity."""
    if kind == "resource":
        return f"{SCHEME}{server}/{name}"
    return f"{server}/{name}" if kind == "prompt" else entity_id(kind, server, name)


def from_gateway_uri(kind: Kind, uri: str) -> tuple[str, str] | None:
    """Split a URI or name from `to_gateway_uri` into the server and its own URI or name.

    Return None if *uri* does not have this form.
    """
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
    """Return the exposed name of each tool, keyed by the tool's id.

    A tool gets the server's name for it if that is free. Otherwise it gets ``server_name``, or a
    readable prefix with a hash of its id. If several tools compete for a name, tools in *first*
    win, then the smallest id.

    Args:
        own_names: The server's name of each tool, keyed by the tool's id.
        reserved: Names that tools must not get, such as those of the meta-tools.
        holders: Id of the only tool that may have a name, keyed by the name in lower case.
        first: Ids of tools whose names the host chose or trusts.
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
    """Yield possible exposed names of the tool with the id *key*, best first, without end."""
    yield plain_name(name, key)
    qualified = plain_name(f"{key.removesuffix(f'/{name}')}_{name}", key)
    yield qualified
    yield _hashed(qualified, key, 8)
    # A server may give a tool such a hash as name; the next hash is then still free.
    yield from (_hashed(qualified, f"{step} {key}", 64) for step in count())


def similar_names(own_names: Mapping[str, str]) -> tuple[tuple[str, ...], ...]:
    """Return groups of tools of different servers with names that look almost the same.

    They differ only in case, underscores, hyphens, a plural, or letters of another script.

    Args:
        own_names: The server's name of each tool, keyed by the tool's id.

    Returns:
        The sorted tool ids of each group. Groups are ordered by their first ids.
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
    folded = unicodedata.normalize("NFKC", name).casefold().translate(_LOOKALIKES)
    return "".join(word.rstrip("s") or word for word in re.split(r"[\W_]+", folded))


def plain_name(name: str, key: str) -> str:
    """Return the exposed name of a tool if no other tool has it."""
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
    """Return the SHA-256 (hex) of all parts of a definition that a search or a call reads.

    The search text is excluded, because the host sets it and may change it without a new approval.
    The hint ``open_world`` is excluded, because only policies read it.
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
