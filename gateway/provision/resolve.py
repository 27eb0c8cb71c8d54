"""From an intent to plans that were judged. Reads, ranks and judges; changes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gateway.errors import InvalidRequestError
from gateway.gateway import Gateway
from gateway.options.environment import variables
from gateway.provision.entries import Entry, Package, Remote
from gateway.provision.fetched import Answers
from gateway.provision.gates import Gate, gates, worst
from gateway.provision.offers import offers
from gateway.provision.options import ProvisionOptions
from gateway.provision.plan import Plan, make, server_name
from gateway.provision.programs import Programs
from gateway.provision.rank import Ranked, rank
from gateway.runtime.text import near
from gateway.types import Diagnostic


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A plan and how it was judged."""

    plan: Plan
    confidence: float
    gates: tuple[Gate, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """What was found outside the catalog."""

    candidates: tuple[Ranked, ...] = ()
    """Best first."""
    best: Judged | None = None
    """The first candidate that nothing forbids, or that only lacks what the host could give, by
    its first such way; else the first. None if there is no candidate."""
    entries: int = 0
    """How many were looked at."""
    diagnostics: tuple[Diagnostic, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where servers come in."""

    folder: Path
    """The folder of all packages."""
    taken: frozenset[str]
    """Names that no new server may get."""
    programs: Programs
    inputs: Mapping[str, str]


async def resolve(
    gateway: Gateway,
    intent: str,
    *,
    options: ProvisionOptions,
    answers: Answers,
    place: Place,
    pick: str = "",
) -> Resolved:
    """Find servers for *intent* in the bundled list and the configured registry.

    Args:
        gateway: Whose search ranks.
        intent: What is wanted.
        options: Where to look and the policy.
        answers: What registries said before.
        place: Where servers come in.
        pick: The name of the one that is wanted; empty leaves the choice to the ranking.

    Raises:
        InvalidRequestError: Nothing is called *pick*.
        ConfigError: The registry's address may not be asked.
    """
    offered = await offers(options, gateway.options.upstream, answers)
    ranked = await rank(
        gateway,
        offered.entries,
        intent,
        limit=options.candidates,
        max_ranked=options.max_ranked,
    )
    if pick:
        ranked = (_picked(pick, offered.entries, ranked),)
    private = gateway.options.upstream.private_hosts
    judged = [_judged(each, place, options, private) for each in ranked]
    return Resolved(
        candidates=ranked,
        best=_best(judged),
        entries=len(offered.entries),
        diagnostics=offered.diagnostics,
    )


def _judged(
    ranked: Ranked, place: Place, options: ProvisionOptions, private_hosts: tuple[str, ...]
) -> list[Judged]:
    return [
        Judged(
            plan=plan,
            confidence=ranked.confidence,
            gates=gates(
                plan,
                confidence=ranked.confidence,
                options=options,
                programs=place.programs,
                private_hosts=private_hosts,
            ),
        )
        for plan in _plans(ranked.entry, place)
    ]


def _best(judged: Sequence[Sequence[Judged]]) -> Judged | None:
    """Choose among the ways to each candidate.

    One that only lacks what the host could give is not passed over for a worse candidate: the host
    is told what it lacks.
    """
    for ways in judged:
        for forbidden in (_forbidden, _impossible):
            for each in ways:
                if not forbidden(each):
                    return each
    return next((each for ways in judged for each in ways), None)


def _forbidden(judged: Judged) -> bool:
    return worst(judged.gates) == "refuse"


def _impossible(judged: Judged) -> bool:
    return worst(gate for gate in judged.gates if gate.name != "inputs") == "refuse"


def _picked(pick: str, entries: Sequence[Entry], ranked: Sequence[Ranked]) -> Ranked:
    by_name = {each.entry.name: each for each in ranked}
    for entry in entries:
        if entry.name == pick:
            return by_name.get(pick) or Ranked(entry=entry, confidence=0.0)
    alike = near(pick, [entry.name for entry in entries])
    hint = f"; near names: {', '.join(alike)}" if alike else ""
    raise InvalidRequestError(f"no server is called {pick!r}{hint}")


def _plans(entry: Entry, place: Place) -> Iterator[Plan]:
    server = server_name(entry, place.taken)
    routes: tuple[Package | Remote, ...] = (*entry.packages, *entry.remotes)
    for route in routes:
        asked = route.environment if isinstance(route, Package) else ()
        yield make(
            entry,
            route,
            server=server,
            folder=place.folder / server,
            inputs=place.inputs,
            given=variables(frozenset(each.name for each in asked)),
            programs=place.programs,
        )
