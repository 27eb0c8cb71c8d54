"""Access policies: decisions, redactions and limits by entity and caller.

The first matching rule with the action ``allow``, ``deny`` or ``ask`` decides; without one, the
entity is allowed. All matching ``redact`` and ``limit`` rules apply.
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
    """Return a function that matches a text against *patterns*; without patterns, all match."""
    return re.compile("|".join(map(translate, patterns))).match if patterns else lambda _text: True


class _Rule:
    """Policy with compiled patterns."""

    def __init__(self, policy: AccessPolicy, place: int) -> None:
        self.policy = policy
        self.name = policy.name or f"policy {place}"
        self._tools, self._servers = _pattern(policy.tools), _pattern(policy.servers)
        self._users, self._tenants = _pattern(policy.users), _pattern(policy.tenants)
        self._tags = {tag.casefold() for tag in policy.tags}
        self._scopes = frozenset(policy.scopes)

    def covers(self, entity: Entity) -> bool:
        """Return whether the policy applies to *entity* or to its original, if it is an alias."""
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
        """Return whether the policy applies to *party*."""
        scopes = self._scopes
        return bool(
            self._users(party.user)
            and self._tenants(party.tenant)
            and (not scopes or ALL_SCOPES in party.scopes or scopes & party.scopes)
        )


def server_of(key: str) -> str:
    """Return the server in the entity id *key*."""
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
    """All policies of a gateway at one moment, in order.

    A deciding rule has the action ``allow``, ``deny`` or ``ask``. An audience contains the
    positions of the deciding rules that match a caller. Entities with the same deciding rules are
    one class.
    """

    policies: tuple[AccessPolicy, ...] = ()
    _rules_of: dict[str, tuple[Entity, Audience]] = field(default_factory=dict, repr=False)
    """Entity and positions of its deciding rules, keyed by entity id."""
    _classes: dict[Audience, int] = field(default_factory=dict, repr=False)

    @cached_property
    def _rules(self) -> tuple[_Rule, ...]:
        return tuple(_Rule(policy, place) for place, policy in enumerate(self.policies, 1))

    @cached_property
    def _deciding(self) -> tuple[_Rule, ...]:
        return tuple(rule for rule in self._rules if rule.policy.action in _DECIDING)

    @cached_property
    def hiding(self) -> tuple[AccessPolicy, ...]:
        """All policies if at least one denies something, else ()."""
        return self.policies if any(policy.action == "deny" for policy in self.policies) else ()

    def audience(self, party: Party) -> Audience:
        """Return the positions of the deciding rules that match *party*."""
        if not self.hiding:
            return ()
        return tuple(
            position for position, rule in enumerate(self._deciding) if rule.concerns(party)
        )

    def shared(self, filters: Filters) -> Filters:
        """Return *filters* without user and tenant, unless these can affect what is visible.

        The user is kept if a policy denies something and a deciding rule has users; the tenant
        likewise.

        Callers with equal filters share cached results.
        """
        deciding_policies = [rule.policy for rule in self._deciding] if self.hiding else []
        user = filters.user if any(policy.users for policy in deciding_policies) else ""
        tenant = filters.tenant if any(policy.tenants for policy in deciding_policies) else ""
        return replace(filters, user=user, tenant=tenant)

    def classify(self, entities: Sequence[Entity]) -> Classes:
        """Return the class of each entity. Only changed entities are matched again."""
        if len(self._rules_of) > 2 * len(entities):
            # Most of these entities are no longer in the catalog.
            self._rules_of.clear()
        numbers = np.empty(len(entities), dtype=np.intp)
        for place, entity in enumerate(entities):
            numbers[place] = self._classes.setdefault(
                self._matching_positions(entity), len(self._classes)
            )
        return numbers

    def _matching_positions(self, entity: Entity) -> Audience:
        """Return the positions of the deciding rules that match *entity*, in order."""
        before, rules = self._rules_of.get(entity.id, (None, ()))
        if before is not entity:
            rules = tuple(
                position for position, rule in enumerate(self._deciding) if rule.covers(entity)
            )
            self._rules_of[entity.id] = entity, rules
        return rules

    def open(self, classes: Classes, audience: Audience) -> NDArray[np.bool_]:
        """Return a mask, shape (n,), of the entities that *audience* may see.

        Args:
            classes: Result of `classify`, shape (n,).
            audience: Result of `audience`.
        """
        concerned = frozenset(audience)
        is_open = [
            next(
                (
                    self._deciding[position].policy.action
                    for position in rules
                    if position in concerned
                ),
                "",
            )
            != "deny"
            for rules in tuple(self._classes)
        ]
        return np.array(is_open, dtype=np.bool_)[classes]

    def may_deny(self, entity: Entity) -> bool:
        """Return whether a rule denies *entity*, even if an earlier rule allows it to everyone."""
        covering = self._matching_positions(entity) if self.hiding else ()
        return any(self._deciding[position].policy.action == "deny" for position in covering)

    def decide(self, entity: Entity, party: Party) -> Decision:
        """Return the action and name of the first deciding rule for *entity* and *party*."""
        for rule in self._deciding:
            if rule.concerns(party) and rule.covers(entity):
                action: Literal["allow", "deny", "ask"] = rule.policy.action  # type: ignore[assignment]
                return Decision(action=action, rule=rule.name)
        return Decision()

    def matching_rules(
        self, action: Literal["redact", "limit"], entity: Entity, party: Party
    ) -> tuple[tuple[str, AccessPolicy], ...]:
        """Return the names and policies of the rules with *action* for *entity* and *party*."""
        return tuple(
            (rule.name, rule.policy)
            for rule in self._rules
            if rule.policy.action == action and rule.concerns(party) and rule.covers(entity)
        )
