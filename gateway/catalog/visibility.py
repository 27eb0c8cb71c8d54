"""What callers may see and do: the questions of the core, which a plugin answers by policies."""

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
"""What callers have in common who may see the same; its numbers mean something to their maker."""
Classes = NDArray[np.intp]
"""The number of the class of each entity, shape (n,): a caller may see all of a class, or none."""
Party: TypeAlias = Caller | Filters
"""A caller, or the filters that carry the caller's user, tenant and scopes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Whether one caller may see and call one entity."""

    action: Literal["allow", "deny", "ask"] = "allow"
    rule: str = ""
    """The name of the policy that decided; empty if none did."""


class Visibility:
    """What callers may see and do at one moment. This class shows everything to everybody.

    A subclass that hides something overrides everything. It is safe from any thread.
    """

    @property
    def hiding(self) -> tuple[object, ...]:
        """A value that is equal as long as the same is hidden from the same callers.

        It is empty if nothing is hidden from anybody. A saved index is only read under an equal
        value.
        """
        return ()

    def audience(self, _: Party) -> Audience:
        """Return a value that all callers share who may see the same as this one."""
        return ()

    def shared(self, filters: Filters) -> Filters:
        """Return *filters* without the user and the tenant where these decide nothing."""
        return replace(filters, user="", tenant="")

    def decide(self, _entity: Entity, _party: Party) -> Decision:
        """Return whether the party may see the entity, and call it without an approval."""
        return Decision()

    def classify(self, entities: Sequence[Entity]) -> Classes:
        """Return the class of each of *entities*; never asked if nothing is hidden."""
        raise NotImplementedError

    def open(self, classes: Classes, audience: Audience) -> NDArray[np.bool_]:
        """Return which entities of *classes* the callers of *audience* may see, shape (n,).

        It is never asked if nothing is hidden.
        """
        raise NotImplementedError

    def may_deny(self, entity: Entity) -> bool:
        """Return whether *entity* is hidden from any caller; never asked if nothing is hidden."""
        raise NotImplementedError


EVERYTHING_VISIBLE = Visibility()
MakeVisibility: TypeAlias = Callable[[tuple[AccessPolicy, ...]], Visibility]
"""Returns the `Visibility` under policies, in their order. It may raise `ConfigError`."""


def without_policies(policies: tuple[AccessPolicy, ...]) -> Visibility:
    """Return `EVERYTHING_VISIBLE`: the `MakeVisibility` of a gateway that enforces no policies.

    Raises:
        ConfigError: There are *policies*, which must not be ignored.
    """
    if policies:
        raise missing_plugin("a policy", "access", "remove the policies")
    return EVERYTHING_VISIBLE


_MAGIC = re.compile(r"[*?[]")
_ESCAPED = re.compile(r"\[([*?[])\]")
"""What `glob.escape` makes of a character that would mean more than itself."""


class AccessRules:
    """Access by patterns of names, as it is at one moment. Pure.

    A pattern is held against ``server/name``, of tools, resources, prompts and entries alike, and
    against ``server`` for a server itself. ``*``, ``?`` and ``[…]`` mean what they mean in a shell,
    and ``*`` goes over slashes; case counts.

    Args:
        tables: Rules by pattern; all that match count, the later ones last.
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
                # The catalog keeps one of these for each thing that was changed here.
                self._exact[_ESCAPED.sub(r"\1", pattern)].append(place)

    def followed_by(self, *tables: Mapping[str, Access]) -> AccessRules:
        """Return these rules and then those of *tables*."""
        return AccessRules(*self._tables, *tables)

    def access(self, server: str, name: str = "") -> Access:
        """Return what the rules say of one item; without *name*, of the server itself."""
        if not self.rules:
            return NO_ACCESS_RULE
        return self._combine(self._places(f"{server}/{name}" if name else server))

    def of_server(self, server: str, name: str) -> Access:
        """Return the use of *server*, by the rules that do not match its item *name* as well.

        Tags, search texts and examples are of the server alone.
        """
        if not self.rules:
            return NO_ACCESS_RULE
        found = self._combine(self._places(server) - self._places(f"{server}/{name}"))
        return replace(found, tags=(), search_text="", examples=())

    def _places(self, key: str) -> set[int]:
        matched = (place for pattern, place in self._compiled if pattern.match(key))
        return {*self._exact.get(key, ()), *matched}

    def _combine(self, places: set[int]) -> Access:
        return combine(self.rules[place][1] for place in sorted(places))


NO_RULES = AccessRules()
