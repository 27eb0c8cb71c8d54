"""Access by patterns of names. Pure.

A pattern is held against ``server/name``, of tools, resources, prompts and entries alike, and
against ``server`` for a server itself. ``*``, ``?`` and ``[…]`` mean what they mean in a shell, and
``*`` goes over slashes; case counts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fnmatch import translate

from gateway.types.access import NO_ACCESS_RULE, Access, combine


class AccessRules:
    """The rules of one moment.

    Args:
        tables: Rules by pattern; all that match count, the later ones last.
    """

    def __init__(self, *tables: Mapping[str, Access]) -> None:
        self._tables = tables
        self.rules = tuple(pair for table in tables for pair in table.items())
        self._compiled = [(re.compile(translate(key)), rule) for key, rule in self.rules]

    def followed_by(self, *tables: Mapping[str, Access]) -> AccessRules:
        """Return these rules and then those of *tables*."""
        return AccessRules(*self._tables, *tables)

    def access(self, server: str, name: str = "") -> Access:
        """Return what the rules say of one item; without *name*, of the server itself."""
        if not self._compiled:
            return NO_ACCESS_RULE
        key = f"{server}/{name}" if name else server
        return combine(rule for pattern, rule in self._compiled if pattern.match(key))


NO_RULES = AccessRules()
