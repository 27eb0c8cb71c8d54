"""Names: canonical ids, and the names that a model may call. Pure.

* A canonical id is ``server/name`` with the source's own name: it never changes.
* An exposed name is at most 64 characters of ``[A-Za-z0-9_-]`` (OpenAI's rule for functions).
* Exposed names depend only on which tools there are, never on the order they came in, and no two
  are equal, not even without case.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping

from gateway.types import ToolDefinition

MAX_NAME = 64
_FOREIGN = re.compile(r"[^A-Za-z0-9_-]+")
_HASH_LENGTHS = (8, 16, 32, 64)


def canonical_id(server: str, name: str) -> str:
    """Give the catalog's id of a source's tool."""
    return f"{server}/{name}"


def exposed_names(
    tools: Iterable[tuple[str, str]], *, reserved: frozenset[str] = frozenset()
) -> Mapping[str, str]:
    """Give each tool the name that a model calls.

    A name is the tool's own if nobody else wants it, else ``server_name``, else a readable
    prefix with a hash of the id. All who want the same name give it up together, so that the
    outcome does not depend on who came first.

    Args:
        tools: Pairs of server and the source's own name, each pair once.
        reserved: Names that no tool may have, such as the meta-tools'.

    Returns:
        Exposed name by canonical id. Empty for no tools.
    """
    pairs = {canonical_id(server, name): (server, name) for server, name in tools}
    step = dict.fromkeys(pairs, 0)
    taken = Counter(name.casefold() for name in reserved)
    while True:
        names = {key: _candidate(key, *pairs[key], step[key]) for key in pairs}
        wanted = Counter(name.casefold() for name in names.values())
        clashes = [
            key
            for key, name in names.items()
            if wanted[name.casefold()] > 1 or taken[name.casefold()]
        ]
        if not clashes:
            return names
        for key in clashes:
            step[key] += 1


def _candidate(key: str, server: str, name: str, step: int) -> str:
    plain = _fit(name, key)
    if step == 0:
        return plain
    qualified = _fit(f"{server}_{name}", key)
    if step == 1:
        return qualified
    # The last length is a whole SHA-256: distinct for distinct ids.
    length = _HASH_LENGTHS[min(step - 2, len(_HASH_LENGTHS) - 1)]
    return _hashed(qualified, key, length)


def _fit(name: str, key: str) -> str:
    plain = _FOREIGN.sub("_", name).strip("_-")
    if not plain:
        return _hashed("tool", key, 8)
    return plain if len(plain) <= MAX_NAME else _hashed(plain, key, 8)


def _hashed(name: str, key: str, length: int) -> str:
    digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:length]
    return f"{name[: MAX_NAME - length - 1]}_{digest}" if length < MAX_NAME else digest


def definition_digest(server: str, definition: ToolDefinition) -> str:
    """Give the SHA-256 (hex) of all that a search or a call reads of a definition.

    The order of JSON keys does not matter; the order of lists does.
    """
    hints = definition.hints
    whole = {
        "server": server,
        "name": definition.name,
        "title": definition.title,
        "description": definition.description,
        "input": definition.input_schema,
        "output": definition.output_schema,
        "hints": {name: getattr(hints, name) for name in hints.__slots__},
    }
    text = json.dumps(whole, sort_keys=True, ensure_ascii=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()
