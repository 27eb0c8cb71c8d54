"""What callers may see and do: the questions of the core, which a plugin answers by policies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np

from gateway.errors import missing_plugin
from gateway.options import AccessPolicy
from gateway.runtime.vectors import NDArray
from gateway.types import Caller, Entity, Filters

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
