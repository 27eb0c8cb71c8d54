"""Consent: nothing is installed and nothing is run that was not shown and agreed to.

A person is asked up to three times, each time with commands whole, never cut (as the protocol's
security practices for installing local servers demand): before the install; before the server
runs for the first time, if its command was not known before or has changed; and before it stays,
if its tools look like an attack.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

from gateway.provision.plan import Plan
from gateway.provision.policy_checks import PolicyCheck, overall_verdict

Stage = Literal["install", "run", "keep"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What a person is asked to agree to."""

    stage: Stage
    plan: Plan
    commands: tuple[tuple[str, ...], ...] = ()
    """The commands that run now, whole: program and arguments of each."""
    launch: tuple[str, ...] = ()
    """The command that runs as the server from then on; empty for a remote one, and while only the
    installed package can tell: then it is asked again."""
    gates: tuple[PolicyCheck, ...] = ()
    """The policy checks of the plan."""
    warnings: tuple[str, ...] = ()
    """What else speaks against it."""


Consent = Callable[[Question], Awaitable[bool]]
"""Returns whether it may be done."""


async def by_policy(question: Question) -> bool:
    """Agree where every check passes and there is no warning: what ``--yes`` means."""
    return overall_verdict(question.gates) == "pass" and not question.warnings


async def refuse_all(question: Question) -> bool:
    """Agree to nothing."""
    del question
    return False
