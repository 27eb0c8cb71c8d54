"""`Provisioner`: installs servers for tools that the catalog lacks, with consent.

    local catalog -> bundled list and registry -> ranking -> policy checks -> plan
    plan -> consent -> install -> consent -> probe -> consent -> configuration -> index

By default, only the first line runs. If a step of the second line fails, the earlier steps are
undone, but stored approvals stay.
"""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import platformdirs

from gateway.config.config_file import server_names
from gateway.errors import ConfigError, InvalidRequestError, UpstreamError
from gateway.options.environment import environment, variables
from gateway.plugins.provision.candidates import ServerCandidate, available_servers, rank_servers
from gateway.plugins.provision.plan import Plan, is_reference, make_plan, server_name
from gateway.plugins.provision.policy import PolicyCheck, check_plan
from gateway.plugins.provision.registry_schema import Package, RegistryEntry, Remote
from gateway.plugins.provision.steps import (
    Audit,
    DeclinedError,
    Outcome,
    ProvisionResult,
    Setup,
    Steps,
)
from gateway.runtime.text import near
from gateway.servers.servers import LOCAL
from gateway.types import ANYONE, Caller

_UNUSABLE = 2
_JudgedPlan = tuple[Plan, tuple[PolicyCheck, ...]]


class Provisioner(Setup):
    """Finds and installs servers for tools that the catalog lacks.

    Args:
        gateway: Gateway that gets the new server.
        options: Registry, policy and limits.
        config: ``mcp.json`` that gets the new server; None keeps it in memory.
        consent: Function that asks a person before anything is installed or run; refuses by
            default.
        programs: Programs that install and run packages; None searches ``PATH``.
        progress: Callback for each step.
    """

    @property
    def folder(self) -> Path:
        """Folder of the installed packages and the audit file."""
        folder = self.options.folder or Path(platformdirs.user_data_dir("tool-gateway")) / "servers"
        return folder.resolve()

    async def provision(
        self,
        intent: str,
        *,
        apply: bool = False,
        pick: str = "",
        inputs: Mapping[str, str] | None = None,
        caller: Caller = ANYONE,
    ) -> ProvisionResult:
        """Find a server for *intent*, and install it if *apply* is true.

        Args:
            intent: Task, in any language.
            apply: True installs and configures, after consent. False only plans.
            pick: Name of the wanted entry, for which the local catalog is not searched.
            inputs: Values of arguments, variables and headers, keyed by name, with references for
                secrets.
            caller: Caller, for whom invisible tools do not exist.

        Returns:
            A result, even if a step fails; see `Outcome`.

        Raises:
            InvalidRequestError: If *intent* is blank, or no entry has the name *pick*.
            ConfigError: If the registry's URL is not allowed, or the configuration cannot be read.
            StoreError: If the audit cannot be written.
            ClosedError: If the gateway is closed.
        """
        if not intent.strip():
            raise InvalidRequestError("the intent is empty: describe the task of the tools")
        values = dict(inputs or {})
        audit = Audit(
            path=self.folder / "audit.jsonl" if apply else None,
            on_step=self.progress,
            secrets=tuple(value for value in values.values() if not is_reference(value)),
        )
        is_captured = self.gateway.options.capture_content
        digest = hashlib.sha256(intent.encode("utf-8", "replace")).hexdigest()[:16]
        audit.record("asked", intent=intent if is_captured else digest)
        if not pick:
            matches = await self.gateway.search(
                intent, limit=self.options.candidates, caller=caller
            )
            local = tuple(
                match for match in matches.matches if match.confidence >= self.options.enough
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
        """Rank servers, check plans for the likely ones, and select a plan."""
        options, upstream = self.options, self.gateway.options.upstream
        folder = environment().cache_dir / "registries"
        entries, diagnostics = await available_servers(options, upstream, folder)
        audit.record("offers", about=f"{len(entries)} servers", entries=len(entries))
        candidates = await rank_servers(
            self.gateway, entries, intent, limit=options.candidates, max_ranked=options.max_ranked
        )
        if pick:
            candidates = (_find_candidate(pick, entries, candidates),)
        names = [f"{item.entry.name} {item.confidence:.2f}" for item in candidates]
        audit.record("ranked", about=", ".join(names), candidates=names)
        result = ProvisionResult(
            outcome="none",
            reason=f"no server is likely to serve (servers checked: {len(entries)})",
            candidates=candidates,
            diagnostics=tuple(diagnostics),
        )
        bar = 0.0 if pick else self.gateway.options.search.min_confidence
        judge = partial(self._judge, inputs=inputs, names_in_use=self._names_in_use())
        best = _select_plan([judge(item) for item in candidates if item.confidence >= bar])
        if best is None:
            return result
        plan, checks = best
        refusals = [f"{item.name}: {item.reason}" for item in checks if item.verdict == "refuse"]
        audit.record(
            "planned",
            "refused" if refusals else "ok",
            f"{plan.entry.name} as {plan.server}",
            entry=plan.entry.name,
            version=plan.entry.version,
            source=plan.entry.source,
            kind=plan.kind,
            gates=[f"{check.name}: {check.verdict}" for check in checks],
        )
        outcome: Outcome = "refused" if refusals else "planned"
        reason = "; ".join(refusals) or "nothing was done yet"
        return replace(result, outcome=outcome, reason=reason, plan=plan, gates=checks)

    def _judge(
        self, candidate: ServerCandidate, inputs: Mapping[str, str], names_in_use: frozenset[str]
    ) -> list[_JudgedPlan]:
        """Return a plan with policy checks for each package and remote of a candidate."""
        entry = candidate.entry
        server = server_name(entry, names_in_use)
        names = frozenset(item.name for package in entry.packages for item in package.environment)
        judged_plans = []
        routes: tuple[Package | Remote, ...] = (*entry.packages, *entry.remotes)
        for route in routes:
            plan = make_plan(
                entry,
                route,
                server=server,
                folder=self.folder / server,
                inputs=inputs,
                environment=variables(names),
                programs=self.programs,
            )
            checks = check_plan(
                plan,
                confidence=candidate.confidence,
                options=self.options,
                programs=self.programs,
                private_hosts=self.gateway.options.upstream.private_hosts,
            )
            judged_plans.append((plan, checks))
        return judged_plans

    def _names_in_use(self) -> frozenset[str]:
        registered = frozenset(self.gateway.server_states()) | {LOCAL}
        configured = server_names(self.config) if self.config is not None else frozenset()
        folders = self.folder.iterdir() if self.folder.is_dir() else ()
        return registered | configured | {path.name for path in folders}

    async def _apply(self, result: ProvisionResult, plan: Plan, audit: Audit) -> ProvisionResult:
        change = self.gateway.hooks.change
        try:
            async with change("provision", plan.server, detail=plan.entry.name):
                return await Steps(self, audit, result).provision_server(plan)
        except DeclinedError as error:
            return replace(result, outcome="declined", reason=str(error))
        except (UpstreamError, ConfigError) as error:
            reason = str(error)
        except OSError as error:
            reason = f"{type(error).__name__}: {error.strerror}"
        return replace(result, outcome="failed", reason=f"{reason}; everything was undone")


def _select_plan(plans: Sequence[Sequence[_JudgedPlan]]) -> _JudgedPlan | None:
    """Return the best plan of the first candidate with a usable plan, or else of the first.

    A candidate that only lacks inputs counts as usable, so that the host learns what is missing.
    None without plans.
    """
    best = [min(alternatives, key=_obstacle_level) for alternatives in plans if alternatives]
    usable = (plan for plan in best if _obstacle_level(plan) < _UNUSABLE)
    return next(usable, best[0] if best else None)


def _obstacle_level(judged: _JudgedPlan) -> int:
    """Return 0 if no check refuses the plan, 1 if only inputs are missing, else 2."""
    refused = {check.name for check in judged[1] if check.verdict == "refuse"}
    return _UNUSABLE if refused - {"inputs"} else len(refused)


def _find_candidate(
    name: str, entries: Sequence[RegistryEntry], candidates: Sequence[ServerCandidate]
) -> ServerCandidate:
    by_name = {candidate.entry.name: candidate for candidate in candidates}
    for entry in entries:
        if entry.name == name:
            return by_name.get(name) or ServerCandidate(entry=entry, confidence=0.0)
    names = near(name, [entry.name for entry in entries])
    hint = f"; similar names: {', '.join(names)}" if names else ""
    raise InvalidRequestError(f"unknown server {name!r}{hint}")


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
        data["install"] = [shlex.join(command) for command in plan.install]
        data["launch"] = plan.url or shlex.join(plan.launch)
    if result.outcome == "installed":
        data["tools"] = [tool.id for tool in result.tools]
    return data
