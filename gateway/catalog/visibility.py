from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import translate
from typing import Literal, TypeAlias

import numpy as np

from gateway.errors import missing_plugin
from gateway.options import AccessPolicy
from gateway.runtime.vectors import NDArray
from gateway.types import Access, Caller, Entity, Filters
from gateway.types.access import NO_ACCESS_RULE, combine

Audience = tuple[int, ...]
"""Key of the policies that apply to a caller. Policies hide the same entities from callers with
equal keys. Required scopes are not part of the key."""
Classes = NDArray[np.intp]
"""Visibility class of each entity, shape (n,). Policies hide either all entities of a class from a
caller, or no entity of the class."""
Party: TypeAlias = Caller | Filters
"""A caller, or filters that contain the caller's user, tenant and scopes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Decision whether one caller may see and call one entity."""

    action: Literal["allow", "deny", "ask"] = "allow"
    rule: str = ""
    """Name of the policy that decided; empty if no policy matched."""


class Visibility:
    """Visibility of entities for callers, under fixed policies. All methods are thread-safe.

    This class hides nothing. A subclass that hides entities overrides every method.
    """

    @property
    def hiding(self) -> tuple[object, ...]:
        """Key of the policies that hide entities. Equal keys hide the same from the same callers.

        Empty if nothing is hidden. A saved index is only used with an equal key.
        """
        return ()

    def audience(self, _: Party) -> Audience:
        """Return the key of a caller; see `Audience`."""
        return ()

    def shared(self, filters: Filters) -> Filters:
        """Return *filters* without user and tenant, if these do not affect which entities are
        visible.
        """
        return replace(filters, user="", tenant="")

    def decide(self, _entity: Entity, _party: Party) -> Decision:
        """Return whether *_party* may see *_entity*, and whether calls of it need an approval."""
        return Decision()

    def classify(self, entities: Sequence[Entity]) -> Classes:
        """Return the visibility class of each entity. Called only if something is hidden."""
        raise NotImplementedError

    def open(self, classes: Classes, audience: Audience) -> NDArray[np.bool_]:
        """Return an array that is True for each entity that *audience* may see, shape (n,).

        *classes* come from `classify`. Called only if something is hidden.
        """
        raise NotImplementedError

    def may_deny(self, entity: Entity) -> bool:
        """Return whether some callers may not see *entity*. True is allowed if this is unknown.

        Called only if something is hidden.
        """
        raise NotImplementedError


EVERYTHING_VISIBLE = Visibility()
MakeVisibility: TypeAlias = Callable[[tuple[AccessPolicy, ...]], Visibility]
"""Creates a `Visibility` from policies, in their order of priority. May raise `ConfigError`."""


def without_policies(policies: tuple[AccessPolicy, ...]) -> Visibility:
    """Return `EVERYTHING_VISIBLE`, for gateways without a plugin for policies.

    Raises:
        ConfigError: If there are *policies*, because they must not be ignored.
    """
    if policies:
        raise missing_plugin("a policy", "access", "remove the policies")
    return EVERYTHING_VISIBLE


_MAGIC = re.compile(r"[*?[]")
_ESCAPED = re.compile(r"\[([*?[])\]")
"""Matches a pattern character that `glob.escape` made literal; its group is the character."""


class AccessRules:
    """Access rules for names that match a pattern. Immutable and pure.

    Patterns are matched against ``server/name``, or ``server`` for a server itself. ``*``, ``?``
    and ``[…]`` work as in a shell, and ``*`` also matches slashes. Case matters.

    Args:
        tables: Access rules keyed by pattern. All matching rules apply; later ones win.
    """

    def __init__(self, *tables: Mapping[str, Access]) -> None:
        self._tables = tables
        self.rules = tuple(pair for table in tables for pair in table.items())
        self._exact: defaultdict[str, list[int]] = defaultdict(list)
        self._compiled: list[tuple[re.Pattern[str], int]] = []
        for place, (pattern, _) in enumerate(self.rules):
            if _MAGIC.search(_ESCAPED.sub("", pattern)):
                self._compiled.append((re.compile(translate(pattern)), place))
            else:
                # Such a pattern matches one name. The catalog stores many of them.
                self._exact[_ESCAPED.sub(r"\1", pattern)].append(place)

    def followed_by(self, *tables: Mapping[str, Access]) -> AccessRules:
        """Return these rules, followed by the rules of *tables*."""
        return AccessRules(*self._tables, *tables)

    def access(self, server: str, name: str = "") -> Access:
        """Return all rules that match the item *name* of a server ("" for the server), combined."""
        if not self.rules:
            return NO_ACCESS_RULE
        return self._combine(self._places(f"{server}/{name}" if name else server))

    def of_server(self, server: str, name: str) -> Access:
        """Return the rules that match *server* but not its item *name*.

        Tags, search texts and examples are omitted, because they belong to the server alone.
        """
        if not self.rules:
            return NO_ACCESS_RULE
        access = self._combine(self._places(server) - self._places(f"{server}/{name}"))
        return replace(access, tags=(), search_text="", examples=())

    def _places(self, key: str) -> set[int]:
        matched = (place for pattern, place in self._compiled if pattern.match(key))
        return {*self._exact.get(key, ()), *matched}

    def _combine(self, places: set[int]) -> Access:
        return combine(self.rules[place][1] for place in sorted(places))


NO_RULES = AccessRules()
