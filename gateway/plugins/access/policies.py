"""Policies over entities and callers: what they decide, hide and limit. Pure.

The first rule of ``allow``, ``deny`` and ``ask`` that matches an entity and a caller decides; where
none does, all is as without policies. Every ``redact`` and ``limit`` that matches applies besides.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import translate
from functools import cached_property
from typing import Literal

import numpy as np

from gateway.catalog.visibility import Audience, Classes, Decision, Party, Visibility
from gateway.options import AccessPolicy
from gateway.runtime.vectors import NDArray
from gateway.types import ALL_SCOPES, Entity, Filters

_DECIDING = frozenset({"allow", "deny", "ask"})


def _pattern(patterns: Sequence[str]) -> Callable[[str], object]:
    """Return a test for texts that match one of *patterns*; without any, all do."""
    return re.compile("|".join(map(translate, patterns))).match if patterns else lambda _text: True


class _Rule:
    """A policy, ready to be matched."""

    def __init__(self, policy: AccessPolicy, place: int) -> None:
        self.policy = policy
        self.name = policy.name or f"policy {place}"
        self._tools, self._servers = _pattern(policy.tools), _pattern(policy.servers)
        self._users, self._tenants = _pattern(policy.users), _pattern(policy.tenants)
        self._tags = {tag.casefold() for tag in policy.tags}
        self._scopes = frozenset(policy.scopes)

    def covers(self, entity: Entity) -> bool:
        """Return whether *entity* matches, by its id or by that of what it stands for."""
        policy, ids = self.policy, (entity.id, *entity.originals)
        servers = (entity.server, *map(server_of, entity.originals))
        return (
            (not policy.kinds or entity.kind in policy.kinds)
            and any(map(self._tools, ids))
            and any(map(self._servers, servers))
            and (not self._tags or not self._tags.isdisjoint(map(str.casefold, entity.hints.tags)))
            and (not policy.hints or any(_HINTS[hint](entity) for hint in policy.hints))
        )

    def concerns(self, party: Party) -> bool:
        """Return whether *party* matches."""
        held = self._scopes
        return bool(
            self._users(party.user)
            and self._tenants(party.tenant)
            and (not held or ALL_SCOPES in party.scopes or held & party.scopes)
        )


def server_of(key: str) -> str:
    """Return the server in the id of an entity."""
    return key.partition("/")[0].rpartition(":")[2]


def _only_reads(entity: Entity) -> bool:
    return entity.hints.read_only is True and (entity.trusted or entity.vouched)


_HINTS: Mapping[str, Callable[[Entity], bool]] = {
    "destructive": lambda entity: entity.hints.destructive is True,
    "open_world": lambda entity: entity.hints.open_world is True,
    "read_only": _only_reads,
    "not_read_only": lambda entity: not _only_reads(entity),
}


@dataclass(frozen=True, eq=False)
class Policies(Visibility):
    """The policies that hold at one moment, in their order: the `Visibility` of the plugin.

    An audience is the places of the deciding rules that match a caller, ascending. The entities of
    one class match the same rules.
    """

    policies: tuple[AccessPolicy, ...] = ()
    _rules_of: dict[str, tuple[Entity, Audience]] = field(default_factory=dict, repr=False)
    """By id, the rules that each entity matched when it was classified last."""
    _classes: dict[Audience, int] = field(default_factory=dict, repr=False)

    @cached_property
    def _rules(self) -> tuple[_Rule, ...]:
        return tuple(_Rule(policy, place) for place, policy in enumerate(self.policies, 1))

    @cached_property
    def _deciding(self) -> tuple[_Rule, ...]:
        return tuple(rule for rule in self._rules if rule.policy.action in _DECIDING)

    @cached_property
    def hiding(self) -> tuple[AccessPolicy, ...]:
        """All policies if any denies something, which nothing that is indexed may name; else ()."""
        return self.policies if any(each.action == "deny" for each in self.policies) else ()

    def audience(self, party: Party) -> Audience:
        """Return which deciding rules match *party*: equal ones may see the same."""
        if not self.hiding:
            return ()
        return tuple(at for at, rule in enumerate(self._deciding) if rule.concerns(party))

    def shared(self, filters: Filters) -> Filters:
        """Return *filters* without the user and the tenant where no deciding rule names any."""
        named = [rule.policy for rule in self._deciding] if self.hiding else []
        user = filters.user if any(policy.users for policy in named) else ""
        tenant = filters.tenant if any(policy.tenants for policy in named) else ""
        return replace(filters, user=user, tenant=tenant)

    def classify(self, entities: Sequence[Entity]) -> Classes:
        """Return the class of each of *entities*; one that was classified before is looked up."""
        if len(self._rules_of) > 2 * len(entities):
            # Most of them are gone.
            self._rules_of.clear()
        numbers = np.empty(len(entities), dtype=np.intp)
        for place, entity in enumerate(entities):
            numbers[place] = self._classes.setdefault(self._covering(entity), len(self._classes))
        return numbers

    def _covering(self, entity: Entity) -> Audience:
        """Return the places of the deciding rules that cover *entity*, ascending."""
        before, rules = self._rules_of.get(entity.id, (None, ()))
        if before is not entity:
            rules = tuple(at for at, rule in enumerate(self._deciding) if rule.covers(entity))
            self._rules_of[entity.id] = entity, rules
        return rules

    def open(self, classes: Classes, audience: Audience) -> NDArray[np.bool_]:
        """Return which entities of *classes* are not denied to *audience*, shape (n,)."""
        concerned = frozenset(audience)
        is_open = [
            next((self._deciding[at].policy.action for at in rules if at in concerned), "")
            != "deny"
            for rules in tuple(self._classes)
        ]
        return np.array(is_open, dtype=np.bool_)[classes]

    def may_deny(self, entity: Entity) -> bool:
        """Return whether *entity* is denied to any caller, whichever it is."""
        covering = self._covering(entity) if self.hiding else ()
        return any(self._deciding[at].policy.action == "deny" for at in covering)

    def decide(self, entity: Entity, party: Party) -> Decision:
        """Return what the first rule says that matches both."""
        for rule in self._deciding:
            if rule.concerns(party) and rule.covers(entity):
                action: Literal["allow", "deny", "ask"] = rule.policy.action  # type: ignore[assignment]
                return Decision(action=action, rule=rule.name)
        return Decision()

    def besides(
        self, action: Literal["redact", "limit"], entity: Entity, party: Party
    ) -> tuple[tuple[str, AccessPolicy], ...]:
        """Return the names and rules of *action* that match both."""
        return tuple(
            (rule.name, rule.policy)
            for rule in self._rules
            if rule.policy.action == action and rule.concerns(party) and rule.covers(entity)
        )
