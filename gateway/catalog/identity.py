"""Names: canonical ids, and the names that a model may call. Pure.

* A canonical id is ``server/name`` with the source's own name: it never changes.
* An exposed name is at most 64 characters of ``[A-Za-z0-9_-]`` (OpenAI's rule for functions).
* Exposed names depend only on which tools there are, never on the order in which they came. No two
  are equal, even without case.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable

from gateway.types import ToolDefinition

MAX_NAME = 64
_HASH_LENGTHS = (8, 16, 32, 64)


def canonical_id(server: str, name: str) -> str:
    """Return the catalog's id of a source's tool."""
    return f"{server}/{name}"


def expose_names(
    tools: Iterable[tuple[str, str]], *, reserved: frozenset[str] = frozenset()
) -> dict[str, str]:
    """Return the exposed name of each tool, by canonical id.

    A tool gets its own name if no other tool wants that, else ``server_name``, else a readable
    prefix with a hash of its id. Tools that want the same name all give it up, so that the outcome
    does not depend on which came first.

    Args:
        tools: The server and the own name of each.
        reserved: Names that no tool may have, such as the meta-tools'.
    """
    pairs = {canonical_id(server, name): (server, name) for server, name in tools}
    unavailable = frozenset(name.casefold() for name in reserved)
    step = dict.fromkeys(pairs, 0)
    names: dict[str, str] = {}
    unsettled = list(pairs)
    while unsettled:
        for key in unsettled:
            names[key] = _candidate(key, *pairs[key], step[key])
            step[key] += 1
        wanted = Counter(name.casefold() for name in names.values())
        unsettled = [
            key
            for key, name in names.items()
            if wanted[name.casefold()] > 1 or name.casefold() in unavailable
        ]
    return names


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
