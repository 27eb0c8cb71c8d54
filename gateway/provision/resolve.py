"""From an intent to judged plans. Reads, ranks and judges; changes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gateway.errors import InvalidRequestError
from gateway.gateway import Gateway
from gateway.options.environment import variables
from gateway.provision.candidates import ServerCandidate, available_servers, rank_servers
from gateway.provision.options import ProvisionOptions
from gateway.provision.plan import Plan, Programs, make_plan, server_name
from gateway.provision.policy_checks import PolicyCheck, check_plan, overall_verdict
from gateway.provision.registry import RegistryCache
from gateway.provision.registry_schema import Package, RegistryEntry, Remote
from gateway.runtime.text import near
from gateway.types import Diagnostic


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedPlan:
    """A plan and its policy checks."""

    plan: Plan
    checks: tuple[PolicyCheck, ...]

    @property
    def is_refused(self) -> bool:
        """Whether a check refuses it."""
        return overall_verdict(self.checks) == "refuse"

    @property
    def is_hopeless(self) -> bool:
        """Whether a check refuses it that no input of the host can settle."""
        others = (check for check in self.checks if check.name != "inputs")
        return overall_verdict(others) == "refuse"


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """The servers outside the catalog for an intent."""

    candidates: tuple[ServerCandidate, ...] = ()
    """Best first."""
    best: JudgedPlan | None = None
    """The plan of the first candidate that nothing refuses, or that only lacks an input; else the
    first plan. None if there is no candidate."""
    entries: int = 0
    """How many entries were ranked."""
    diagnostics: tuple[Diagnostic, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallSite:
    """Where servers are installed."""

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
    registry_cache: RegistryCache,
    site: InstallSite,
    pick: str = "",
) -> Resolution:
    """Find servers for *intent* in the bundled list and the configured registry.

    Args:
        gateway: Its search ranks.
        intent: What is wanted.
        options: Where to look, and the policy.
        registry_cache: Earlier answers of registries.
        site: Where servers are installed.
        pick: The name of the wanted server; empty leaves the choice to the ranking.

    Raises:
        InvalidRequestError: No server has the name *pick*.
        ConfigError: The registry's address is not allowed.
    """
    upstream = gateway.options.upstream
    available = await available_servers(options, upstream, registry_cache)
    candidates = await rank_servers(
        gateway, available.entries, intent, limit=options.candidates, max_ranked=options.max_ranked
    )
    if pick:
        candidates = (_find_candidate(pick, available.entries, candidates),)
    plans = [
        [
            JudgedPlan(
                plan=plan,
                checks=check_plan(
                    plan,
                    confidence=candidate.confidence,
                    options=options,
                    programs=site.programs,
                    private_hosts=upstream.private_hosts,
                ),
            )
            for plan in _make_plans(candidate.entry, site)
        ]
        for candidate in candidates
    ]
    return Resolution(
        candidates=candidates,
        best=_select_plan(plans),
        entries=len(available.entries),
        diagnostics=available.diagnostics,
    )


def _select_plan(plans: Sequence[Sequence[JudgedPlan]]) -> JudgedPlan | None:
    """Return the best of each candidate's plans.

    A candidate that only lacks an input is not skipped for a worse one: the host learns what it
    lacks.
    """
    for alternatives in plans:
        for plan in alternatives:
            if not plan.is_refused:
                return plan
        for plan in alternatives:
            if not plan.is_hopeless:
                return plan
    return next((plan for alternatives in plans for plan in alternatives), None)


def _find_candidate(
    name: str, entries: Sequence[RegistryEntry], candidates: Sequence[ServerCandidate]
) -> ServerCandidate:
    by_name = {candidate.entry.name: candidate for candidate in candidates}
    for entry in entries:
        if entry.name == name:
            return by_name.get(name) or ServerCandidate(entry=entry, confidence=0.0)
    names = near(name, [entry.name for entry in entries])
    hint = f"; near names: {', '.join(names)}" if names else ""
    raise InvalidRequestError(f"no server is called {name!r}{hint}")


def _make_plans(entry: RegistryEntry, site: InstallSite) -> list[Plan]:
    server = server_name(entry, site.taken)
    routes: tuple[Package | Remote, ...] = (*entry.packages, *entry.remotes)
    names = frozenset(item.name for package in entry.packages for item in package.environment)
    return [
        make_plan(
            entry,
            route,
            server=server,
            folder=site.folder / server,
            inputs=site.inputs,
            environment=variables(names),
            programs=site.programs,
        )
        for route in routes
    ]
