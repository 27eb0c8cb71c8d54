"""Brings one planned server in, step by step; what a failed step leaves behind is undone.

Each step that leaves something says first how it is taken away again; a failure, a refusal or a
cancellation does that, last step first.
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
from gateway.manifests.manifest import Manifest
from gateway.manifests.mcp_json import parse_manifest
from gateway.mcp.servers import HttpServer, StdioServer
from gateway.options.environment import catalog_store_path
from gateway.provision.audit import Audit
from gateway.provision.configuration import add_server, take_back
from gateway.provision.consent import Consent, Question, Stage
from gateway.provision.gates import Gate
from gateway.provision.install import install
from gateway.provision.plan import Plan, written
from gateway.provision.probe import probe
from gateway.provision.programs import Programs
from gateway.storage.listing_store import SqliteListingStore
from gateway.types import Entity, Filters
from gateway.types.listing import Listing


class DeclinedError(GatewayError):
    """Nobody agreed to a step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What a server comes into."""

    gateway: Gateway
    config: Path | None
    consent: Consent
    programs: Programs
    install_timeout_s: float
    audit: Audit


@dataclass(frozen=True, slots=True, kw_only=True)
class Brought:
    """A server that came in."""

    plan: Plan
    """As it was really done."""
    tools: tuple[Entity, ...]
    packages: tuple[str, ...] = ()


async def bring_in(plan: Plan, judged: Sequence[Gate], setting: Setting) -> Brought:
    """Install, probe, index and configure *plan*.

    Args:
        plan: What nothing forbids.
        judged: How it was judged; shown with each question.
        setting: Where it comes in.

    Raises:
        DeclinedError: Nobody agreed.
        UpstreamError: A command failed, or the server does not work.
        ConfigError: The server or the configuration cannot be used.
        StoreError: The audit cannot be written.
        OSError: The folder cannot be made.
    """
    step = _Steps(setting, tuple(judged))
    async with AsyncExitStack() as undo:
        undo.push(step.undone)
        packages: tuple[str, ...] = ()
        if plan.folder is not None:
            await step.agree("install", plan)
            _make_folder(plan.folder, undo)
            known = plan.launch
            plan, packages = await step.install(plan)
            if plan.launch != known:
                await step.agree("run", plan)
        else:
            await step.agree("run", plan)
        manifest, target = _configured(plan, setting.config)
        listing = await step.probe(plan, target)
        _remember(setting.gateway, manifest, plan.server, target, listing)
        await step.configure(plan, manifest, undo)
        tools = await step.index(plan.server)
        undo.pop_all()
    setting.audit.tell("done", about=f"{len(tools)} tools", tools=[each.id for each in tools])
    return Brought(plan=plan, tools=tools, packages=packages)


def _make_folder(folder: Path, undo: AsyncExitStack) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=0o700)
    undo.push_async_callback(asyncio.to_thread, shutil.rmtree, folder, ignore_errors=True)


def _configured(plan: Plan, config: Path | None) -> tuple[Manifest, StdioServer | HttpServer]:
    manifest = parse_manifest({"mcpServers": {plan.server: plan.configured()}}, where="the plan")
    target = manifest.servers.get(plan.server)
    if target is None:
        raise ConfigError("; ".join(each.detail for each in manifest.warnings))
    origin = "" if config is None else str(config.resolve())
    return replace(manifest, origin=origin), target


class _Steps:
    def __init__(self, setting: Setting, judged: tuple[Gate, ...]) -> None:
        self._setting = setting
        self._judged = judged
        self._audit = setting.audit

    async def agree(self, stage: Stage, plan: Plan, warnings: tuple[str, ...] = ()) -> None:
        commands = plan.install if stage == "install" else ()
        question = Question(
            stage=stage,
            plan=plan,
            commands=commands,
            launch=plan.launch,
            gates=self._judged,
            warnings=warnings,
        )
        agreed = await self._setting.consent(question)
        self._audit.tell(
            "consent",
            "ok" if agreed else "refused",
            stage,
            stage=stage,
            commands=[written(each) for each in commands],
            launch=written(plan.launch),
            warnings=warnings,
        )
        if not agreed:
            raise DeclinedError(f"nobody agreed to {stage} {plan.server!r}")

    async def install(self, plan: Plan) -> tuple[Plan, tuple[str, ...]]:
        self._audit.tell("install", about=f"{plan.entry.name} {plan.entry.version}".strip())
        setting = self._setting
        done = await install(plan, setting.programs, limit_s=setting.install_timeout_s)
        self._audit.tell("install", about=f"{len(done.packages)} packages", packages=done.packages)
        return done.plan, done.packages

    async def probe(self, plan: Plan, target: StdioServer | HttpServer) -> Listing:
        gateway = self._setting.gateway
        listing = await probe(
            plan.server, target, bridge=gateway.bridge, options=gateway.options.upstream
        )
        names = [tool.name for tool in listing.tools]
        self._audit.tell("probe", about=", ".join(names), tools=names)
        if listing.suspicions:
            told = (f"tool {name!r}: {', '.join(why)}" for name, why in listing.suspicions.items())
            await self.agree("keep", plan, tuple(told))
        return listing

    async def configure(self, plan: Plan, manifest: Manifest, undo: AsyncExitStack) -> None:
        gateway, config = self._setting.gateway, self._setting.config
        undo.push_async_callback(gateway.remove_server, plan.server)
        if config is not None:
            undo.callback(take_back, add_server(config, plan.server, plan.configured()))
            self._audit.tell("configure", about=str(config), file=str(config))
            await gateway.reload()
        if plan.server not in gateway.server_states():
            # A gateway that does not read this file, or there is none.
            gateway.add_config(manifest)

    async def index(self, server: str) -> tuple[Entity, ...]:
        tools = await self._setting.gateway.list_tools(Filters(servers=frozenset({server})))
        self._audit.tell("index", "ok" if tools else "failed", f"{len(tools)} tools")
        if not tools:
            raise UpstreamError(server, "none of its tools came into the catalog")
        return tools

    def undone(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        own = isinstance(error, GatewayError)
        self._audit.tell("rollback", "failed", str(error) if own else type(error).__name__)


def _remember(
    gateway: Gateway,
    manifest: Manifest,
    server: str,
    target: StdioServer | HttpServer,
    listing: Listing,
) -> None:
    """Keep what the probe listed, so that the index starts nothing, and pin what was agreed to."""
    records = SqliteListingStore(catalog_store_path(gateway.options))
    owner = manifest.owner(server)
    pins = {COMMAND_LINE_PIN: target.launch, **listing.digests} if owner else {}
    # Without the store the index lists the server itself.
    with suppress(StoreError):
        records.keep(target.fingerprint, server, listing)
        records.record_seen(owner, pins)
        records.approve(owner, list(pins))
    records.close()
