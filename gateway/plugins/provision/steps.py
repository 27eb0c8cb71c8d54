"""Installation steps of one planned server.

A failure, a refusal or a cancellation undoes the finished steps in reverse order.

The audit file has a line of JSON for each step. It contains names of variables and headers, origins
of URLs, and a hash of the intent (the intent itself if the gateway captures content), but no
secrets.
"""

from __future__ import annotations

import asyncio
import json
import shlex
import shutil
import uuid
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from gateway.catalog.approvals import COMMAND_LINE_PIN
from gateway.config.config_file import add_server, undo_edit
from gateway.config.manifest import Manifest
from gateway.config.mcp_json import parse_manifest
from gateway.errors import ConfigError, GatewayError, StoreError, UpstreamError
from gateway.gateway import Gateway
from gateway.mcp.servers import HttpServer, StdioServer
from gateway.options.provision import ProvisionOptions
from gateway.plugins.provision.candidates import ServerCandidate
from gateway.plugins.provision.install import install
from gateway.plugins.provision.plan import Plan, Programs
from gateway.plugins.provision.policy import Consent, PolicyCheck, Question, Stage, refuse_all
from gateway.runtime.atomic_file import FOLDER_MODE, make_private_file, make_private_folder
from gateway.runtime.text import counted
from gateway.sources.mcp import McpSource
from gateway.storage.host_key import approval_key
from gateway.types import Diagnostic, Entity, Filters, Match
from gateway.types.listing import Listing


class DeclinedError(GatewayError):
    """A person declined a step of the installation."""


Step = Literal[
    "asked", "local", "offers", "ranked", "planned", "consent", "install", "probe", "index",
    "configure", "done", "rollback",
]  # fmt: skip
StepOutcome = Literal["ok", "refused", "failed"]
OnStep = Callable[[Step, StepOutcome, str], None]
"""Callback with a step, its outcome and a text for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """Writer of the audit lines of one run."""

    path: Path | None
    """Audit file; None writes nothing, as in a dry run."""
    on_step: OnStep | None = None
    secrets: tuple[str, ...] = ()
    """Values of the host that may be secret. They are removed from every line of the audit file."""
    run: str = field(default_factory=lambda: uuid.uuid4().hex[:12])
    """Id of the run in its lines."""

    def record(
        self, step: Step, outcome: StepOutcome = "ok", about: str = "", **facts: object
    ) -> None:
        """Write the audit line of one step.

        Args:
            step: Step.
            outcome: Outcome of the step.
            about: Text for `on_step`, which is not written.
            facts: Further JSON values of the line.

        Raises:
            StoreError: If the file cannot be written. The run must not continue.
        """
        if self.on_step is not None:
            self.on_step(step, outcome, about)
        if self.path is None:
            return
        timestamp = datetime.now(UTC).isoformat(timespec="milliseconds")
        line = {"at": timestamp, "run": self.run, "step": step, "outcome": outcome, **facts}
        line = {key: self._redact(value) for key, value in line.items()}
        try:
            make_private_file(self.path)
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
        except OSError as error:
            raise StoreError(f"the audit {str(self.path)!r} cannot be written: {error}") from error

    def _redact(self, value: object) -> object:
        if isinstance(value, list | tuple):
            return [self._redact(item) for item in value]
        if isinstance(value, str):
            for secret in sorted(filter(None, self.secrets), key=len, reverse=True):
                value = value.replace(secret, "***")
        return value


Outcome = Literal["local", "none", "planned", "refused", "declined", "failed", "installed"]
"""Outcome of a provisioning run:

* *local*: The catalog already has a tool for the intent.
* *none*: No known server is likely to serve the intent.
* *planned*: A dry run ended with a plan.
* *refused*: A policy check refuses the plan.
* *declined*: A person declined a step.
* *failed*: A step failed. The earlier steps were undone, but stored approvals stay.
* *installed*: The server's tools can be called."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvisionResult:
    """Result of a provisioning run."""

    outcome: Outcome
    reason: str = ""
    local: tuple[Match, ...] = ()
    """Tools that already serve the intent."""
    candidates: tuple[ServerCandidate, ...] = ()
    plan: Plan | None = None
    gates: tuple[PolicyCheck, ...] = ()
    """Results of the policy checks."""
    server: str = ""
    """Name of the new server."""
    tools: tuple[Entity, ...] = ()
    """Tools of the new server."""
    packages: tuple[str, ...] = ()
    """Installed packages, as ``name==version``."""
    diagnostics: tuple[Diagnostic, ...] = ()


@dataclass(eq=False, repr=False)
class Setup:
    """Gateway, options and callbacks of a `Provisioner`."""

    gateway: Gateway
    _: KW_ONLY
    options: ProvisionOptions = field(default_factory=ProvisionOptions)
    config: Path | None = None
    consent: Consent = refuse_all
    programs: Programs = field(default_factory=Programs.find)
    progress: OnStep | None = None


@dataclass(frozen=True, slots=True)
class Steps:
    """Installation steps of one run."""

    setup: Setup
    audit: Audit
    planned: ProvisionResult
    """Result of the planning, whose policy checks a person sees."""

    async def provision_server(self, plan: Plan) -> ProvisionResult:
        """Install the server of *plan*, start it once, configure it, and index its tools.

        Args:
            plan: Plan that no policy check refuses.

        Returns:
            Result of the whole provisioning run.

        Raises:
            DeclinedError: If a person declines a step.
            UpstreamError: If a command fails, or the server does not work.
            ConfigError: If the server or the configuration cannot be used.
            StoreError: If the audit cannot be written.
            OSError: If the folder cannot be created.
        """
        async with AsyncExitStack() as undo:
            undo.callback(self.audit.record, "rollback", "failed")
            packages = tuple[str, ...]()
            if plan.folder is not None:
                await self._ask("install", plan)
                make_private_folder(plan.folder.parent)
                plan.folder.mkdir(mode=FOLDER_MODE)
                undo.push_async_callback(
                    asyncio.to_thread, shutil.rmtree, plan.folder, ignore_errors=True
                )
                limit_s = self.setup.options.install_timeout_s
                self.audit.record("install", about=f"{plan.entry.name} {plan.entry.version}")
                plan, packages = await install(plan, self.setup.programs, limit_s=limit_s)
                about = f"{len(packages)} packages"
                self.audit.record("install", about=about, packages=packages)
            await self._ask("run", plan)
            manifest, target = self._parse(plan)
            listing = await self._probe(plan, target)
            self._store_listing(manifest, plan.server, target, listing)
            await self._configure(plan, manifest, undo)
            tools = await self._index(plan.server)
            undo.pop_all()
        self.audit.record("done", about=f"{len(tools)} tools", tools=[tool.id for tool in tools])
        return replace(
            self.planned,
            outcome="installed",
            reason=f"{counted(len(tools), 'tool')} can be called",
            plan=plan,
            server=plan.server,
            tools=tools,
            packages=packages,
        )

    async def _ask(self, stage: Stage, plan: Plan, warnings: tuple[str, ...] = ()) -> None:
        commands = plan.install if stage == "install" else ()
        question = Question(
            stage=stage,
            plan=plan,
            commands=commands,
            launch=plan.launch,
            gates=self.planned.gates,
            warnings=warnings,
        )
        is_agreed = await self.setup.consent(question)
        self.audit.record(
            "consent",
            "ok" if is_agreed else "refused",
            stage,
            stage=stage,
            commands=[shlex.join(command) for command in commands],
            launch=shlex.join(plan.launch),
            warnings=warnings,
        )
        if not is_agreed:
            raise DeclinedError(f"nobody agreed to {stage} {plan.server!r}")

    def _parse(self, plan: Plan) -> tuple[Manifest, StdioServer | HttpServer]:
        document = {"mcpServers": {plan.server: plan.config_entry()}}
        manifest = parse_manifest(document, where="the plan")
        target = manifest.servers.get(plan.server)
        if target is None:
            raise ConfigError("; ".join(warning.detail for warning in manifest.warnings))
        path = "" if self.setup.config is None else str(self.setup.config.resolve())
        installation = self.setup.gateway.options.installation
        return replace(manifest, origin=path, installation=installation), target

    async def _probe(self, plan: Plan, target: StdioServer | HttpServer) -> Listing:
        """Start the server once, as it would run later, and return its tool list."""
        options = replace(self.setup.gateway.options.upstream, connect_attempts=1)
        source = McpSource(plan.server, target, bridge=self.setup.gateway.bridge, options=options)
        try:
            listing = await source.list_tools()
        finally:
            await source.close()
        if not listing.tools:
            raise UpstreamError(plan.server, "has no usable tools")
        names = [tool.name for tool in listing.tools]
        self.audit.record("probe", about=", ".join(names), tools=names)
        suspicions = listing.suspicions.items()
        warnings = tuple(f"tool {name!r}: {', '.join(reasons)}" for name, reasons in suspicions)
        if warnings:
            await self._ask("keep", plan, warnings)
        return listing

    def _store_listing(
        self, manifest: Manifest, server: str, target: StdioServer | HttpServer, listing: Listing
    ) -> None:
        """Store and approve the probe's tool list, so that indexing does not need the server."""
        records = self.setup.gateway.store.listings
        owner = manifest.owner(server)
        key = approval_key(self.setup.gateway.options)
        launch = {COMMAND_LINE_PIN: target.approval_digest(key)}
        pins = {**launch, **listing.digests} if owner else {}
        # Without the stored list, the index build asks the server.
        with suppress(StoreError):
            records.keep(target.fingerprint, server, listing)
            records.record_seen(owner, pins)
            records.approve(owner, list(pins))

    async def _configure(self, plan: Plan, manifest: Manifest, undo: AsyncExitStack) -> None:
        gateway, config = self.setup.gateway, self.setup.config
        undo.push_async_callback(gateway.remove_server, plan.server)
        if config is not None:
            undo.callback(undo_edit, add_server(config, plan.server, plan.config_entry()))
            self.audit.record("configure", about=str(config), file=str(config))
            await gateway.reload()
        if plan.server not in gateway.server_states():
            # The gateway does not read a configuration file with the server.
            gateway.add_config(manifest)

    async def _index(self, server: str) -> tuple[Entity, ...]:
        tools = await self.setup.gateway.list_tools(Filters(servers=frozenset({server})))
        self.audit.record("index", "ok" if tools else "failed", f"{len(tools)} tools")
        if not tools:
            raise UpstreamError(server, "none of its tools was added to the catalog")
        return tools
