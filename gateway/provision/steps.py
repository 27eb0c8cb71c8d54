"""The steps that install one planned server; a failed step undoes all earlier ones.

Each step that leaves something behind first registers how to remove it. A failure, a refusal or a
cancellation runs these in reverse order.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType

from gateway.catalog.approvals import COMMAND_LINE_PIN
from gateway.errors import ConfigError, GatewayError, StoreError, UpstreamError
from gateway.gateway import Gateway
from gateway.manifests.config_file import add_server, undo_edit
from gateway.manifests.manifest import Manifest
from gateway.manifests.mcp_json import parse_manifest
from gateway.mcp.servers import HttpServer, StdioServer
from gateway.options.environment import catalog_store_path
from gateway.provision.audit import Audit
from gateway.provision.consent import Consent, Question, Stage
from gateway.provision.install import install
from gateway.provision.plan import Plan, Programs, format_command
from gateway.provision.policy_checks import PolicyCheck
from gateway.sources.mcp import McpSource
from gateway.storage.catalog import SqliteCatalog
from gateway.types import Entity, Filters
from gateway.types.listing import Listing


class DeclinedError(GatewayError):
    """A step was not agreed to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepsResult:
    """A server that was installed."""

    plan: Plan
    """As it was really carried out."""
    tools: tuple[Entity, ...]
    packages: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """The steps, and what they work on."""

    gateway: Gateway
    config: Path | None
    consent: Consent
    programs: Programs
    install_timeout_s: float
    audit: Audit

    async def provision_server(self, plan: Plan, checks: Sequence[PolicyCheck]) -> StepsResult:
        """Install, probe, index and configure *plan*.

        Args:
            plan: Not refused by any check.
            checks: Its policy checks; shown with each question.

        Raises:
            DeclinedError: A step was not agreed to.
            UpstreamError: A command failed, or the server does not work.
            ConfigError: The server or the configuration cannot be used.
            StoreError: The audit cannot be written.
            OSError: The folder cannot be made.
        """
        async with AsyncExitStack() as undo:
            undo.push(self._on_exit)
            packages: tuple[str, ...] = ()
            if plan.folder is not None:
                await self._ask("install", plan, checks)
                plan.folder.parent.mkdir(parents=True, exist_ok=True)
                plan.folder.mkdir(mode=0o700)
                undo.push_async_callback(
                    asyncio.to_thread, shutil.rmtree, plan.folder, ignore_errors=True
                )
                shown = plan.launch
                plan, packages = await self._install(plan)
                if plan.launch != shown:
                    await self._ask("run", plan, checks)
            else:
                await self._ask("run", plan, checks)
            manifest, target = self._parse(plan)
            listing = await self._probe(plan, target, checks)
            self._store_listing(manifest, plan.server, target, listing)
            await self._configure(plan, manifest, undo)
            tools = await self._index(plan.server)
            undo.pop_all()
        self.audit.record("done", about=f"{len(tools)} tools", tools=[tool.id for tool in tools])
        return StepsResult(plan=plan, tools=tools, packages=packages)

    async def _ask(
        self,
        stage: Stage,
        plan: Plan,
        checks: Sequence[PolicyCheck],
        warnings: tuple[str, ...] = (),
    ) -> None:
        commands = plan.install if stage == "install" else ()
        question = Question(
            stage=stage,
            plan=plan,
            commands=commands,
            launch=plan.launch,
            gates=tuple(checks),
            warnings=warnings,
        )
        is_agreed = await self.consent(question)
        self.audit.record(
            "consent",
            "ok" if is_agreed else "refused",
            stage,
            stage=stage,
            commands=[format_command(command) for command in commands],
            launch=format_command(plan.launch),
            warnings=warnings,
        )
        if not is_agreed:
            raise DeclinedError(f"nobody agreed to {stage} {plan.server!r}")

    async def _install(self, plan: Plan) -> tuple[Plan, tuple[str, ...]]:
        self.audit.record("install", about=f"{plan.entry.name} {plan.entry.version}".strip())
        result = await install(plan, self.programs, limit_s=self.install_timeout_s)
        about = f"{len(result.packages)} packages"
        self.audit.record("install", about=about, packages=result.packages)
        return result.plan, result.packages

    def _parse(self, plan: Plan) -> tuple[Manifest, StdioServer | HttpServer]:
        document = {"mcpServers": {plan.server: plan.config_entry()}}
        manifest = parse_manifest(document, where="the plan")
        target = manifest.servers.get(plan.server)
        if target is None:
            raise ConfigError("; ".join(warning.detail for warning in manifest.warnings))
        path = "" if self.config is None else str(self.config.resolve())
        return replace(manifest, origin=path), target

    async def _probe(
        self, plan: Plan, target: StdioServer | HttpServer, checks: Sequence[PolicyCheck]
    ) -> Listing:
        """Start the server once, as it would run, and list its tools."""
        options = replace(self.gateway.options.upstream, connect_attempts=1)
        source = McpSource(plan.server, target, bridge=self.gateway.bridge, options=options)
        try:
            listing = await source.list_tools()
        finally:
            await source.close()
        if not listing.tools:
            raise UpstreamError(plan.server, "offers no tool that can be used")
        names = [tool.name for tool in listing.tools]
        self.audit.record("probe", about=", ".join(names), tools=names)
        if listing.suspicions:
            warnings = (
                f"tool {name!r}: {', '.join(reasons)}"
                for name, reasons in listing.suspicions.items()
            )
            await self._ask("keep", plan, checks, tuple(warnings))
        return listing

    def _store_listing(
        self, manifest: Manifest, server: str, target: StdioServer | HttpServer, listing: Listing
    ) -> None:
        """Store the probe's listing, so that the index starts nothing, and approve its content."""
        records = SqliteCatalog(catalog_store_path(self.gateway.options))
        owner = manifest.owner(server)
        pins = {COMMAND_LINE_PIN: target.launch, **listing.digests} if owner else {}
        # Without the store the index lists the server itself.
        with suppress(StoreError):
            records.keep(target.fingerprint, server, listing)
            records.record_seen(owner, pins)
            records.approve(owner, list(pins))
        records.close()

    async def _configure(self, plan: Plan, manifest: Manifest, undo: AsyncExitStack) -> None:
        undo.push_async_callback(self.gateway.remove_server, plan.server)
        if self.config is not None:
            undo.callback(undo_edit, add_server(self.config, plan.server, plan.config_entry()))
            self.audit.record("configure", about=str(self.config), file=str(self.config))
            await self.gateway.reload()
        if plan.server not in self.gateway.server_states():
            # The gateway does not read this file, or there is none.
            self.gateway.add_config(manifest)

    async def _index(self, server: str) -> tuple[Entity, ...]:
        tools = await self.gateway.list_tools(Filters(servers=frozenset({server})))
        self.audit.record("index", "ok" if tools else "failed", f"{len(tools)} tools")
        if not tools:
            raise UpstreamError(server, "none of its tools came into the catalog")
        return tools

    def _on_exit(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        is_ours = isinstance(error, GatewayError)
        self.audit.record("rollback", "failed", str(error) if is_ours else type(error).__name__)
