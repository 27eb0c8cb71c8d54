"""`Provisioner`: from a need to callable tools, with consent or not at all.

    local catalog -> bundled list and registry -> ranking -> policy checks -> plan
    plan -> consent -> install -> consent -> probe -> consent -> configuration -> index

Dry by default: the second line happens only on demand. Each of its steps has a line in the audit,
and a failed step undoes all earlier ones.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import platformdirs

from gateway.errors import ConfigError, InvalidRequestError, UpstreamError
from gateway.gateway import Gateway
from gateway.manifests.config_file import server_names
from gateway.options.environment import environment
from gateway.provision.audit import Audit, OnStep, hash_intent
from gateway.provision.candidates import ServerCandidate
from gateway.provision.consent import Consent, refuse_all
from gateway.provision.options import ProvisionOptions
from gateway.provision.plan import Plan, Programs, format_command, is_reference
from gateway.provision.policy_checks import PolicyCheck, overall_verdict
from gateway.provision.registry import RegistryCache
from gateway.provision.resolve import InstallSite, Resolution, resolve
from gateway.provision.steps import DeclinedError, Steps
from gateway.registration.sources import LOCAL
from gateway.runtime.cache import Clock
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
        self._registry_cache = RegistryCache(
            environment().cache_dir / "registry.sqlite3", wall=wall
        )

    @property
    def folder(self) -> Path:
        """The folder of packages and the audit."""
        return self.options.folder or Path(platformdirs.user_data_dir("tool-gateway")) / "servers"

    def close(self) -> None:
        """Close the store of registries' answers. Closing twice is harmless."""
        self._registry_cache.close()

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
        resolution = await resolve(
            self._gateway,
            intent,
            options=self.options,
            registry_cache=self._registry_cache,
            site=InstallSite(
                folder=self.folder,
                taken=self._taken_names(),
                programs=self._programs,
                inputs=values,
            ),
            pick=pick,
        )
        _record_resolution(audit, resolution)
        result = _plan_result(resolution)
        if result.plan is None or result.outcome != "planned" or not apply:
            return result
        return await self._apply(result, result.plan, audit)

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


def _plan_result(resolution: Resolution) -> ProvisionResult:
    best = resolution.best
    result = ProvisionResult(
        outcome="none",
        reason=f"none of {resolution.entries} servers is likely to serve",
        candidates=resolution.candidates,
        diagnostics=resolution.diagnostics,
    )
    if best is None:
        return result
    result = replace(result, plan=best.plan, gates=best.checks)
    refusals = [f"{item.name}: {item.reason}" for item in best.checks if item.verdict == "refuse"]
    if refusals:
        return replace(result, outcome="refused", reason="; ".join(refusals))
    return replace(result, outcome="planned", reason="nothing was done yet")


def _record_resolution(audit: Audit, resolution: Resolution) -> None:
    audit.record("offers", about=f"{resolution.entries} servers", entries=resolution.entries)
    names = [f"{item.entry.name} {item.confidence:.2f}" for item in resolution.candidates]
    audit.record("ranked", about=", ".join(names), candidates=names)
    best = resolution.best
    if best is None:
        return
    plan = best.plan
    audit.record(
        "planned",
        "refused" if overall_verdict(best.checks) == "refuse" else "ok",
        f"{plan.entry.name} as {plan.server}",
        entry=plan.entry.name,
        version=plan.entry.version,
        source=plan.entry.source,
        kind=plan.kind,
        gates=[f"{check.name}: {check.verdict}" for check in best.checks],
    )


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
