"""Consent: nothing is installed and nothing is run that was not shown and agreed to.

A person is asked up to three times, each time with commands whole, never cut (as the protocol's
security practices for installing local servers demand): before the install; before the server
runs for the first time, if its command was not known before or is another one now; and before it
stays, if its tools look like an attack.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

from gateway.provision.gates import Gate, worst
from gateway.provision.plan import Plan

Stage = Literal["install", "run", "keep"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What somebody is asked to agree to."""

    stage: Stage
    plan: Plan
    commands: tuple[tuple[str, ...], ...] = ()
    """What will be run now, whole: program and arguments of each."""
    launch: tuple[str, ...] = ()
    """What will be run as the server from then on; empty for a remote one, and as long as only
    the installed package tells: then it is asked again."""
    gates: tuple[Gate, ...] = ()
    """How the plan was judged."""
    warnings: tuple[str, ...] = ()
    """What else speaks against it."""


Consent = Callable[[Question], Awaitable[bool]]
"""Says whether it may be done."""


async def by_policy(question: Question) -> bool:
    """Agree where no gate has a doubt and nothing else speaks against it: what ``--yes`` means."""
    return worst(question.gates) == "pass" and not question.warnings


async def nobody(question: Question) -> bool:
    """Agree to nothing."""
    del question
    return False
