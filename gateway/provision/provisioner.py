"""`Provisioner`: from a need to callable tools, with consent or not at all.

    local catalog -> bundled list and registry -> ranking -> policy checks -> plan
    plan -> consent -> install -> consent -> probe -> consent -> configuration -> index

Dry by default: the second line happens only on demand. Each of its steps has a line in the audit,
and a failed step undoes all earlier ones.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import platformdirs

from gateway.errors import ConfigError, InvalidRequestError, UpstreamError
from gateway.gateway import Gateway
from gateway.manifests.config_file import server_names
from gateway.options.environment import environment, variables
from gateway.provision.audit import Audit, OnStep, hash_intent
from gateway.provision.candidates import ServerCandidate, available_servers, rank_servers
from gateway.provision.consent import Consent, refuse_all
from gateway.provision.options import ProvisionOptions
from gateway.provision.plan import (
    Plan,
    Programs,
    format_command,
    is_reference,
    make_plan,
    server_name,
)
from gateway.provision.policy_checks import PolicyCheck, check_plan, overall_verdict
from gateway.provision.registry import RegistryCache
from gateway.provision.registry_schema import Package, RegistryEntry, Remote
from gateway.provision.steps import DeclinedError, Steps
from gateway.registration.sources import LOCAL
from gateway.runtime.cache import Clock
from gateway.runtime.text import near
from gateway.types import Diagnostic, Entity, Match

Outcome = Literal["local", "none", "planned", "refused", "declined", "failed", "installed"]
"""*local*: the catalog has it. *none*: no server is likely to serve. *planned*: a dry run.
*refused*: a policy check refuses it. *declined*: a step was not agreed to. *failed*: a step failed,
everything is undone. *installed*: its tools can be called."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvisionResult:
    """The result of a provisioning."""

    outcome: Outcome
    reason: str = ""
    local: tuple[Match, ...] = ()
    """The tools of the catalog that serve already."""
    candidates: tuple[ServerCandidate, ...] = ()
    plan: Plan | None = None
    gates: tuple[PolicyCheck, ...] = ()
    """The policy checks of the plan."""
    server: str = ""
    """The new server's name in the catalog."""
    tools: tuple[Entity, ...] = ()
    """Its tools, which can be called."""
    packages: tuple[str, ...] = ()
    """What was installed, as ``name==version``."""
    diagnostics: tuple[Diagnostic, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _JudgedPlan:
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


class Provisioner:
    """Finds servers for what the catalog cannot do, and installs them.

    Args:
        gateway: The gateway whose catalog grows.
        options: Where to look, the policy and the limits.
        config: The ``mcp.json`` that a new server is written into; None keeps it in memory.
        consent: Asked before anything is installed or run; by default it refuses.
        programs: What installs and runs packages; None searches ``PATH``.
        progress: Called at each step.
        wall: Seconds since the epoch.
    """

    def __init__(  # noqa: PLR0913  (keyword-only options of the public API)
        self,
        gateway: Gateway,
        *,
        options: ProvisionOptions | None = None,
        config: Path | None = None,
        consent: Consent = refuse_all,
        programs: Programs | None = None,
        progress: OnStep | None = None,
        wall: Clock = time.time,
    ) -> None:
        self._gateway = gateway
        self.options = options or ProvisionOptions()
        self._config = config
        self._consent = consent
        self._programs = programs or Programs.find()
        self._progress = progress
        self._wall = wall
        self._registry_cache = RegistryCache(environment().cache_dir / "registries", wall=wall)

    @property
    def folder(self) -> Path:
        """The folder of packages and the audit."""
        return self.options.folder or Path(platformdirs.user_data_dir("tool-gateway")) / "servers"

    async def provision(
        self,
        intent: str,
        *,
        apply: bool = False,
        pick: str = "",
        inputs: Mapping[str, str] | None = None,
    ) -> ProvisionResult:
        """Find a server for *intent*; install it only with *apply*.

        Args:
            intent: What is wanted, in any language that the search understands.
            apply: Install and configure, after consent; False only plans.
            pick: The name of the wanted entry; then the local catalog is not searched.
            inputs: The server's inputs by name: arguments, variables, headers. A secret is given
                as a reference, never as itself.

        Returns:
            A result in every case; see `Outcome`.

        Raises:
            InvalidRequestError: *intent* is blank, or no entry has the name *pick*.
            ConfigError: The registry's address is not allowed, or the configuration cannot be
                read.
            StoreError: The audit cannot be written.
            ClosedError: The gateway was closed.
        """
        if not intent.strip():
            raise InvalidRequestError("say what the tools are wanted for")
        values = dict(inputs or {})
        audit = Audit(
            self.folder / "audit.jsonl" if apply else None,
            on_step=self._progress,
            wall=self._wall,
            secrets=tuple(value for value in values.values() if not is_reference(value)),
        )
        is_captured = self._gateway.options.capture_content
        audit.record("asked", intent=intent if is_captured else hash_intent(intent))
        if not pick:
            found = await self._gateway.search(intent, limit=self.options.candidates)
            local = tuple(
                match for match in found.matches if match.confidence >= self.options.enough
            )
            about = ", ".join(match.id for match in local)
            audit.record("local", about=about, found=len(local))
            if local:
                reason = "the catalog has it already"
                return ProvisionResult(outcome="local", reason=reason, local=local)
        result = await self._plan(intent, pick, values, audit)
        if result.plan is None or result.outcome != "planned" or not apply:
            return result
        return await self._apply(result, result.plan, audit)

    async def _plan(
        self, intent: str, pick: str, inputs: Mapping[str, str], audit: Audit
    ) -> ProvisionResult:
        """Rank the servers outside the catalog, and judge the plans of the best ones."""
        options, upstream = self.options, self._gateway.options.upstream
        available = await available_servers(options, upstream, self._registry_cache)
        entries = available.entries
        audit.record("offers", about=f"{len(entries)} servers", entries=len(entries))
        candidates = await rank_servers(
            self._gateway, entries, intent, limit=options.candidates, max_ranked=options.max_ranked
        )
        if pick:
            candidates = (_find_candidate(pick, entries, candidates),)
        names = [f"{item.entry.name} {item.confidence:.2f}" for item in candidates]
        audit.record("ranked", about=", ".join(names), candidates=names)
        result = ProvisionResult(
            outcome="none",
            reason=f"none of {len(entries)} servers is likely to serve",
            candidates=candidates,
            diagnostics=available.diagnostics,
        )
        taken = self._taken_names()
        best = _select_plan([self._judge(item, inputs, taken) for item in candidates])
        if best is None:
            return result
        _record_plan(best, audit)
        refusals = [
            f"{item.name}: {item.reason}" for item in best.checks if item.verdict == "refuse"
        ]
        return replace(
            result,
            outcome="refused" if refusals else "planned",
            reason="; ".join(refusals) or "nothing was done yet",
            plan=best.plan,
            gates=best.checks,
        )

    def _judge(
        self, candidate: ServerCandidate, inputs: Mapping[str, str], taken: frozenset[str]
    ) -> list[_JudgedPlan]:
        """Return a plan for each package and remote of a candidate, with its policy checks."""
        entry = candidate.entry
        server = server_name(entry, taken)
        names = frozenset(item.name for package in entry.packages for item in package.environment)
        routes: tuple[Package | Remote, ...] = (*entry.packages, *entry.remotes)
        plans = (
            make_plan(
                entry,
                route,
                server=server,
                folder=self.folder / server,
                inputs=inputs,
                environment=variables(names),
                programs=self._programs,
            )
            for route in routes
        )
        return [
            _JudgedPlan(
                plan=plan,
                checks=check_plan(
                    plan,
                    confidence=candidate.confidence,
                    options=self.options,
                    programs=self._programs,
                    private_hosts=self._gateway.options.upstream.private_hosts,
                ),
            )
            for plan in plans
        ]

    def _taken_names(self) -> frozenset[str]:
        registered = frozenset(self._gateway.server_states()) | {LOCAL}
        configured = server_names(self._config) if self._config is not None else frozenset()
        folders = self.folder.iterdir() if self.folder.is_dir() else ()
        return registered | configured | {path.name for path in folders}

    async def _apply(self, result: ProvisionResult, plan: Plan, audit: Audit) -> ProvisionResult:
        steps = Steps(
            gateway=self._gateway,
            config=self._config,
            consent=self._consent,
            programs=self._programs,
            install_timeout_s=self.options.install_timeout_s,
            audit=audit,
        )
        try:
            installed = await steps.provision_server(plan, result.gates)
        except DeclinedError as error:
            return replace(result, outcome="declined", reason=str(error))
        except (UpstreamError, ConfigError) as error:
            return replace(result, outcome="failed", reason=f"{error}; everything was undone")
        except OSError as error:
            reason = f"{type(error).__name__}: {error.strerror}; everything was undone"
            return replace(result, outcome="failed", reason=reason)
        return replace(
            result,
            outcome="installed",
            reason=f"{len(installed.tools)} tools can be called",
            plan=installed.plan,
            server=installed.plan.server,
            tools=installed.tools,
            packages=installed.packages,
        )


def _record_plan(judged: _JudgedPlan, audit: Audit) -> None:
    plan = judged.plan
    audit.record(
        "planned",
        "refused" if judged.is_refused else "ok",
        f"{plan.entry.name} as {plan.server}",
        entry=plan.entry.name,
        version=plan.entry.version,
        source=plan.entry.source,
        kind=plan.kind,
        gates=[f"{check.name}: {check.verdict}" for check in judged.checks],
    )


def _select_plan(plans: Sequence[Sequence[_JudgedPlan]]) -> _JudgedPlan | None:
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


def result_for_model(result: ProvisionResult) -> dict[str, object]:
    """Return a result as short JSON for a model, without secrets."""
    data: dict[str, object] = {"outcome": result.outcome, "reason": result.reason}
    if result.outcome == "local":
        data["tools"] = [match.id for match in result.local]
    if result.candidates:
        data["candidates"] = [
            {
                "name": candidate.entry.name,
                "description": candidate.entry.description,
                "confidence": round(candidate.confidence, 4),
            }
            for candidate in result.candidates
        ]
    if result.plan is not None:
        plan = result.plan
        data["server"] = plan.entry.name
        data["gates"] = {item.name: f"{item.verdict}: {item.reason}" for item in result.gates}
        data["install"] = [format_command(command) for command in plan.install]
        data["launch"] = plan.url or format_command(plan.launch)
    if result.outcome == "installed":
        data["tools"] = [tool.id for tool in result.tools]
    return data
