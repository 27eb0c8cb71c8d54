"""`Provisioner`: from a need to callable tools, with somebody's consent or not at all.

    local catalog -> bundled list and registry -> ranking -> gates -> plan
    plan -> consent -> install -> consent -> probe -> consent -> configuration -> index

Dry by default: the second line happens only on demand, each step of it has a line in the audit,
and if one fails everything before it is undone.
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
from gateway.options.environment import environment
from gateway.provision.audit import Audit, Told, hashed, silent
from gateway.provision.bring import DeclinedError, Setting, bring_in
from gateway.provision.configuration import configured_names
from gateway.provision.consent import Consent, nobody
from gateway.provision.fetched import Answers
from gateway.provision.gates import Gate, worst
from gateway.provision.options import ProvisionOptions
from gateway.provision.plan import Plan, is_reference
from gateway.provision.programs import Programs
from gateway.provision.rank import Ranked
from gateway.provision.resolve import Place, Resolved, resolve
from gateway.registration.sources import LOCAL
from gateway.runtime.cache import Clock
from gateway.types import Diagnostic, Entity, Match

Outcome = Literal["local", "none", "planned", "refused", "declined", "failed", "installed"]
"""*local*: the catalog has it. *none*: nobody offers it. *planned*: a dry run. *refused*: a gate
forbids it. *declined*: nobody agreed. *failed*: a step failed, everything is undone.
*installed*: its tools can be called."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Provisioned:
    """What came of it."""

    outcome: Outcome
    reason: str = ""
    local: tuple[Match, ...] = ()
    """The tools of the catalog that serve already."""
    candidates: tuple[Ranked, ...] = ()
    plan: Plan | None = None
    gates: tuple[Gate, ...] = ()
    server: str = ""
    """How the new server is called."""
    tools: tuple[Entity, ...] = ()
    """Its tools, which can be called."""
    packages: tuple[str, ...] = ()
    """What was installed, as ``name==version``."""
    diagnostics: tuple[Diagnostic, ...] = ()


class Provisioner:
    """Finds servers for what the catalog cannot do, and brings them in.

    Args:
        gateway: Whose catalog it is.
        options: Where to look, the policy and the limits.
        config: The ``mcp.json`` that a new server is written into; None keeps it in memory alone.
        consent: Asked before anything is installed or run; by default nobody agrees.
        programs: What installs and runs packages; None looks on the search path.
        progress: Told of each step.
        wall: Seconds since the epoch.
    """

    def __init__(  # noqa: PLR0913  (keyword-only options of the public API)
        self,
        gateway: Gateway,
        *,
        options: ProvisionOptions | None = None,
        config: Path | None = None,
        consent: Consent = nobody,
        programs: Programs | None = None,
        progress: Told = silent,
        wall: Clock = time.time,
    ) -> None:
        self._gateway = gateway
        self.options = options or ProvisionOptions()
        self._config = config
        self._consent = consent
        self._programs = programs or Programs.found()
        self._progress = progress
        self._wall = wall
        self._answers = Answers(environment().cache_dir / "registry.sqlite3", wall=wall)

    @property
    def folder(self) -> Path:
        """Where packages and the audit live."""
        return self.options.folder or Path(platformdirs.user_data_dir("tool-gateway")) / "servers"

    def close(self) -> None:
        """Close the store of registries' answers. Twice is harmless."""
        self._answers.close()

    async def provision(
        self,
        intent: str,
        *,
        apply: bool = False,
        pick: str = "",
        inputs: Mapping[str, str] | None = None,
    ) -> Provisioned:
        """Find a server for *intent*; bring it in only with *apply*.

        Args:
            intent: What is wanted, in any language that the search understands.
            apply: Install and configure, after consent; False only plans.
            pick: The name of the entry that is wanted; then the local catalog is not looked at.
            inputs: What the server needs, by name: arguments, variables, headers. A secret is
                given as a reference, never as itself.

        Returns:
            What came of it, in every case; see `Outcome`.

        Raises:
            InvalidRequestError: *intent* is blank, or nothing is called *pick*.
            ConfigError: The registry's address may not be asked, or the configuration cannot be
                read.
            StoreError: The audit cannot be written.
            ClosedError: The gateway was closed.
        """
        if not intent.strip():
            raise InvalidRequestError("say what the tools are wanted for")
        given = dict(inputs or {})
        audit = self._audit(given, kept=apply)
        shown = intent if self._gateway.options.capture_content else hashed(intent)
        audit.tell("asked", intent=shown)
        if not pick:
            found = await self._gateway.search(intent, limit=self.options.candidates)
            good = tuple(each for each in found.matches if each.confidence >= self.options.enough)
            audit.tell("local", about=", ".join(each.id for each in good), found=len(good))
            if good:
                told = "the catalog has it already"
                return Provisioned(outcome="local", reason=told, local=good)
        resolved = await self._resolve(intent, pick, given)
        _tell(audit, resolved)
        planned = _planned(resolved)
        if planned.outcome != "planned" or not apply:
            return planned
        return await self._bring_in(planned, audit)

    async def _resolve(self, intent: str, pick: str, inputs: Mapping[str, str]) -> Resolved:
        place = Place(
            folder=self.folder,
            taken=self._taken(),
            programs=self._programs,
            inputs=inputs,
        )
        return await resolve(
            self._gateway,
            intent,
            options=self.options,
            answers=self._answers,
            place=place,
            pick=pick,
        )

    def _taken(self) -> frozenset[str]:
        registered = frozenset(self._gateway.server_states()) | {LOCAL}
        named = configured_names(self._config) if self._config is not None else frozenset()
        folders = self.folder.iterdir() if self.folder.is_dir() else ()
        return registered | named | {each.name for each in folders}

    def _audit(self, inputs: Mapping[str, str], *, kept: bool) -> Audit:
        return Audit(
            self.folder / "audit.jsonl" if kept else None,
            progress=self._progress,
            wall=self._wall,
            hidden=tuple(each for each in inputs.values() if not is_reference(each)),
        )

    async def _bring_in(self, planned: Provisioned, audit: Audit) -> Provisioned:
        if planned.plan is None:
            raise AssertionError(planned.outcome)
        setting = Setting(
            gateway=self._gateway,
            config=self._config,
            consent=self._consent,
            programs=self._programs,
            install_timeout_s=self.options.install_timeout_s,
            audit=audit,
        )
        try:
            brought = await bring_in(planned.plan, planned.gates, setting)
        except DeclinedError as error:
            return replace(planned, outcome="declined", reason=str(error))
        except (UpstreamError, ConfigError) as error:
            return replace(planned, outcome="failed", reason=f"{error}; everything was undone")
        except OSError as error:
            told = f"{type(error).__name__}: {error.strerror}; everything was undone"
            return replace(planned, outcome="failed", reason=told)
        return replace(
            planned,
            outcome="installed",
            reason=f"{len(brought.tools)} tools can be called",
            plan=brought.plan,
            server=brought.plan.server,
            tools=brought.tools,
            packages=brought.packages,
        )


def _planned(resolved: Resolved) -> Provisioned:
    best = resolved.best
    found = Provisioned(
        outcome="none",
        reason=f"none of {resolved.entries} servers is likely to serve",
        candidates=resolved.candidates,
        diagnostics=resolved.diagnostics,
    )
    if best is None:
        return found
    found = replace(found, plan=best.plan, gates=best.gates)
    against = [f"{gate.name}: {gate.reason}" for gate in best.gates if gate.verdict == "refuse"]
    if against:
        return replace(found, outcome="refused", reason="; ".join(against))
    return replace(found, outcome="planned", reason="nothing was done yet")


def _tell(audit: Audit, resolved: Resolved) -> None:
    audit.tell("offers", about=f"{resolved.entries} servers", entries=resolved.entries)
    names = [f"{each.entry.name} {each.confidence:.2f}" for each in resolved.candidates]
    audit.tell("ranked", about=", ".join(names), candidates=names)
    best = resolved.best
    if best is None:
        return
    verdicts = {gate.name: gate.verdict for gate in best.gates}
    audit.tell(
        "planned",
        "refused" if worst(best.gates) == "refuse" else "ok",
        f"{best.plan.entry.name} as {best.plan.server}",
        entry=best.plan.entry.name,
        version=best.plan.entry.version,
        source=best.plan.entry.source,
        kind=best.plan.kind,
        gates=[f"{name}: {verdict}" for name, verdict in verdicts.items()],
    )
