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
    """Give the catalog's id of a source's tool."""
    return f"{server}/{name}"


class Naming:
    """Exposed names of tools that come and go. Not for two threads at once.

    A tool gets its own name if no other tool wants that, else ``server_name``, else a readable
    prefix with a hash of its id. Tools that want the same name all give it up, so that the outcome
    does not depend on which came first.

    So a change renames only tools that try, or tried, a name in common with one that came or went.

    Args:
        reserved: Names that no tool may have, such as the meta-tools'.
    """

    def __init__(self, *, reserved: frozenset[str] = frozenset()) -> None:
        self._taken = frozenset(name.casefold() for name in reserved)
        self._pairs: dict[str, tuple[str, str]] = {}
        self._wants: dict[str, tuple[str, ...]] = {}
        """The names that each tool tried, without case."""
        self._wanted: dict[str, tuple[str, ...]] = {}
        """The tools that tried each of those names."""
        self.names: dict[str, str] = {}
        """Exposed name by canonical id."""
        self.named = 0
        """How many tools the last change named."""

    def change(self, gone: Iterable[str], new: Iterable[tuple[str, str]]) -> set[str]:
        """Take ids out, put pairs of server and name in; give the ids that got other names."""
        group: dict[str, None] = {}
        for key in gone:
            former = self._forget(key)
            del self.names[key], self._pairs[key]
            met = (self._wanted.get(name, ()) for name in former)
            group |= dict.fromkeys(other for each in met for other in each)
            group.pop(key, None)
        for server, name in new:
            key = canonical_id(server, name)
            self._pairs[key] = server, name
            group[key] = None
        while True:
            names, wants = self._settled(group)
            tried = {name for key in group for name in (*wants[key], *self._wants.get(key, ()))}
            rivals = {key for name in tried for key in self._wanted.get(name, ())}
            if rivals <= group.keys():
                break
            group |= dict.fromkeys(sorted(rivals))
        self.named = len(group)
        for key in group:
            self._forget(key)
        for key in group:
            self._wants[key] = wants[key]
            for name in wants[key]:
                self._wanted[name] = (*self._wanted.get(name, ()), key)
        moved = {key for key in group if self.names.get(key) != names[key]}
        self.names.update(names)
        return moved

    def _forget(self, key: str) -> tuple[str, ...]:
        wants = self._wants.pop(key, ())
        for name in wants:
            left = tuple(other for other in self._wanted[name] if other != key)
            if left:
                self._wanted[name] = left
            else:
                del self._wanted[name]
        return wants

    def _settled(self, group: Iterable[str]) -> tuple[dict[str, str], dict[str, tuple[str, ...]]]:
        """Name *group* as if there were no other tool.

        Returns:
            The exposed names, and all names that each tool tried, both by id.
        """
        step = dict.fromkeys(group, 0)
        tried: dict[str, dict[str, None]] = {key: {} for key in step}
        names: dict[str, str] = {}
        changed = list(step)
        while True:
            for key in changed:
                names[key] = _candidate(key, *self._pairs[key], step[key])
                tried[key][names[key].casefold()] = None
            wanted = Counter(name.casefold() for name in names.values())
            changed = [
                key
                for key, name in names.items()
                if wanted[name.casefold()] > 1 or name.casefold() in self._taken
            ]
            if not changed:
                return names, {key: tuple(each) for key, each in tried.items()}
            for key in changed:
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
    plain = re.sub(r"[^A-Za-z0-9_-]+", "_", name).strip("_-")
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
