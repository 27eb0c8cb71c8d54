"""The table ``kinds`` of a configuration file -> kinds of the host's own. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from gateway.catalog.entries import KIND
from gateway.catalog.kinds import KINDS
from gateway.catalog.projection import tree_of
from gateway.errors import ConfigError, InvalidRequestError
from gateway.options import CustomKind

_KEYS = frozenset({"searchable", "maxEntries"})


def read_kinds(raw: object) -> Mapping[str, CustomKind]:
    """Read ``{"dataset": {"searchable": ["topic", "owner.team"], "maxEntries": 500}}``.

    Raises:
        ConfigError: If a kind or what is said of it cannot be used; it says which, and what to do.
    """
    if not isinstance(raw, dict):
        raise ConfigError("'kinds' must be an object")
    return {name: _kind(name, each) for name, each in raw.items()}


def _kind(name: str, raw: object) -> CustomKind:
    if not re.fullmatch(KIND, name) or name in KINDS:
        raise ConfigError(
            f"kind {name!r} cannot be declared: take small letters, digits, '_' or '-', and none "
            f"of {', '.join(KINDS)}"
        )
    if not isinstance(raw, dict) or not raw.keys() <= _KEYS:
        raise ConfigError(f"kind {name!r} holds {' and '.join(sorted(_KEYS))}, and no more")
    paths, most = raw.get("searchable", []), raw.get("maxEntries", CustomKind().max_entries)
    if not isinstance(paths, list) or not isinstance(most, int) or isinstance(most, bool):
        raise ConfigError(f"kind {name!r}: 'searchable' is a list of paths, 'maxEntries' a number")
    try:
        tree_of(paths)
    except InvalidRequestError as error:
        raise ConfigError(f"kind {name!r}: {error}") from error
    return CustomKind(searchable=tuple(paths), max_entries=most)
