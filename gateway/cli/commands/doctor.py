"""`gateway doctor`: check everything that can be wrong here.

Without ``--connect`` nothing is started and no network is used.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Literal

from rich.text import Text
from typer import Option

from gateway.cli import options
from gateway.cli.command import command, command_group
from gateway.cli.commands.servers import ServerStatus, server_statuses, start_server
from gateway.cli.exit_codes import OK, UNAVAILABLE, USAGE
from gateway.cli.output import Output
from gateway.cli.session import DEFAULT_CONFIG, read_config, vector_store
from gateway.cli.tables import plain_table
from gateway.embed.local.encoders import ALL_MODELS, EncoderModel, is_available, verify_files
from gateway.errors import GatewayError
from gateway.manifests.manifest import Manifest
from gateway.mcp.servers import StdioServer
from gateway.mcp.ssrf_guard import guarded_transport
from gateway.options import Options, UpstreamOptions
from gateway.options.environment import catalog_store_path, environment
from gateway.runtime import VERSION
from gateway.storage.listing_store import SqliteListingStore

Verdict = Literal["ok", "warn", "fail"]
_STYLES: Mapping[Verdict, str] = {"ok": "green", "warn": "yellow", "fail": "red"}
_OLDEST_PYTHON = (3, 11)
_INSTALL_MODEL = 'pip install "tool-gateway[local]"'
_EXTRAS: Mapping[str, tuple[str, str]] = {
    "keyring": ("keyring", "secrets from the system's keyring"),
    "shacl": ("pyshacl", "gateway graph validate by SHACL"),
    "watch": ("watchfiles", "a configuration that is read again when it changes"),
}

app = command_group()


@dataclass(frozen=True, slots=True)
class Check:
    """The result of one check."""

    name: str
    verdict: Verdict
    detail: str
    remedy: str = ""
    """What to do; empty if there is nothing to do."""


@command(app)
def doctor(
    *,
    connect: Annotated[
        bool, Option("--connect", help="Start each server too, and use the network.")
    ] = False,
    config: options.Config = None,
) -> Output:
    """Check everything that this gateway needs here, and say what to do."""
    manifest, config_checks = check_config(config)
    checks = [*check_machine(), *check_models(), *check_stores(), *config_checks]
    if manifest is not None:
        checks += check_servers(config, manifest)
        if connect:
            checks += check_connections(manifest)
    failed = [check for check in checks if check.verdict == "fail"]
    rows = (
        (Text(check.verdict, style=_STYLES[check.verdict]), check.name, check.detail, check.remedy)
        for check in checks
    )
    items = [
        {"name": check.name, "verdict": check.verdict, "told": check.detail, "todo": check.remedy}
        for check in checks
    ]
    is_usage = any(check.name == "configuration" for check in failed)
    return Output(
        {"healthy": not failed, "checks": items},
        plain_table("", "", "", "what to do", rows=rows),
        OK if not failed else USAGE if is_usage else UNAVAILABLE,
    )


def check_machine(version: tuple[int, ...] = sys.version_info[:3]) -> Iterator[Check]:
    """Check the version of Python, and which extras are installed."""
    python = ".".join(str(part) for part in version)
    detail = f"{python} on {platform.system()} {platform.machine()}, tool-gateway {VERSION}"
    if version < _OLDEST_PYTHON:
        yield Check("python", "fail", detail, "use Python 3.11 or newer")
    else:
        yield Check("python", "ok", detail)
    for extra, (package, use) in _EXTRAS.items():
        is_installed = find_spec(package) is not None
        detail = "installed" if is_installed else f"not installed; it is for {use}"
        yield Check(f"extra {extra}", "ok", detail)


def check_models(
    models: tuple[EncoderModel, ...] = ALL_MODELS,
    *,
    runs: Callable[[EncoderModel], bool] = is_available,
) -> Iterator[Check]:
    """Check the files of the embedded models, byte for byte."""
    alone = "until all of them run, the first model ranks alone"
    for model in models:
        name, folder = f"model {model.id}", model.find_folder()
        if folder is None:
            remedy = f"for meaning in any language: {_INSTALL_MODEL}"
            yield Check(name, "warn", f"not installed; {alone}", remedy)
        elif not runs(model):
            detail = f"installed, but not all that runs it; {alone}"
            yield Check(name, "warn", detail, _INSTALL_MODEL)
        else:
            yield _try(name, "its files are those we know", lambda: verify_files(model, folder))  # noqa: B023  (called at once)


def check_stores() -> Iterator[Check]:
    """Check the folder of vectors, tool lists and approvals."""
    folder = environment().cache_dir
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        remedy = "make it writable, or name another with GATEWAY_CACHE_DIR"
        yield Check("cache folder", "fail", f"{folder} cannot be written: {error.strerror}", remedy)
        return
    yield Check("cache folder", "ok", f"{folder}, {_megabytes(folder)} MB")
    yield _encoder_files(environment().encoder_dir)
    with (
        closing(SqliteListingStore(catalog_store_path(Options()))) as records,
        closing(vector_store()) as vectors,
    ):
        yield _try("catalog store", "can be read", lambda: records.changed(""))
        yield _try("vector store", "can be read", vectors.count)


def _encoder_files(cache: Path) -> Check:
    conversions = [(model, model.converted) for model in ALL_MODELS if model.converted]
    current = tuple(files.folder(cache).name for model, files in conversions if is_available(model))
    folders = sorted(
        path for _, files in conversions for path in cache.glob(files.pattern) if path.is_dir()
    )
    if not folders:
        return Check("encoder files", "ok", f"{cache}, none yet: the first embedding makes them")
    unused = ", ".join(
        f"{path.name} ({_megabytes(path)} MB)"
        for path in folders
        if not path.name.startswith(current)
    )
    remedy = f"unless another version is in use, delete there {unused}" if unused else ""
    return Check("encoder files", "ok", f"{cache}, {sum(map(_megabytes, folders))} MB", remedy)


def _megabytes(folder: Path) -> int:
    size = 0
    for path in folder.rglob("*"):
        with suppress(OSError):  # another process may delete it
            size += path.lstat().st_size
    return round(size / 1_000_000)


def check_config(config: Path | None) -> tuple[Manifest | None, tuple[Check, ...]]:
    """Check the configuration file, and return what it holds."""
    path, name = config or DEFAULT_CONFIG, "configuration"
    if config is None and not path.is_file():
        remedy = "gateway servers add, or gateway import claude|cursor|vscode"
        return None, (Check(name, "warn", "there is none in this folder", remedy),)
    try:
        manifest = read_config(config)
    except GatewayError as error:
        return None, (Check(name, "fail", str(error), "mend the file"),)
    count = len(manifest.servers) + len(manifest.virtual)
    unusable = len(manifest.unusable)
    detail = f"{path}: servers that can be used: {count}, that cannot: {unusable}"
    warnings = (
        Check(name, "warn", warning.detail, "mend the file")
        for warning in manifest.warnings
        if not any(f"server {server!r}" in warning.detail for server in manifest.unusable)
    )
    return manifest, (Check(name, "ok", detail), *warnings)


def check_servers(config: Path | None, manifest: Manifest) -> Iterator[Check]:
    """Check each server: its requirements, its address, its approvals."""
    try:
        statuses = server_statuses(config)
    except GatewayError as error:
        yield Check("servers", "fail", str(error))
        return
    for status in statuses:
        yield _check_target(status, manifest)
        if status.changed and status.state != "unusable":
            names = " ".join(status.changed)
            detail = f"not as approved: {', '.join(status.changed)}"
            remedy = f"look at it, then: gateway approve {names}"
            yield Check(f"server {status.name}", "warn", detail, remedy)


def _check_target(status: ServerStatus, manifest: Manifest) -> Check:
    name = f"server {status.name}"
    if status.state == "unusable":
        return Check(name, "fail", status.detail, "set it, or mend its entry")
    if status.state == "disabled":
        return Check(name, "ok", "disabled")
    target = manifest.servers.get(status.name)
    if target is None:
        missing = manifest.virtual[status.name].servers - manifest.servers.keys()
        if not missing:
            return Check(name, "ok", status.target)
        detail = f"it has aliases for servers that are not there: {', '.join(sorted(missing))}"
        return Check(name, "warn", detail, "configure them, or drop these")
    if isinstance(target, StdioServer):
        return _check_program(name, target)
    hosts = UpstreamOptions().private_hosts
    return _try(name, f"{target.origin} may be asked", lambda: guarded_transport(target.url, hosts))


def _check_program(name: str, target: StdioServer) -> Check:
    if target.cwd is not None and not target.cwd.is_dir():
        return Check(name, "fail", f"folder {str(target.cwd)!r} was not found", "correct its cwd")
    command = target.command
    if target.cwd is not None and os.sep in command:
        command = str(target.cwd / command)
    program = shutil.which(command, path=target.env.get("PATH"))
    if program is None:
        detail = f"command {target.command!r} was not found"
        return Check(name, "fail", detail, "install it, or correct its entry")
    return Check(name, "ok", program)


def check_connections(manifest: Manifest) -> Iterator[Check]:
    """Start each server and list its tools."""
    for name in (*manifest.servers, *manifest.virtual):
        test = start_server(name, manifest)
        detail = "; ".join(item.detail for item in test.diagnostics)
        if test.works:
            detail = detail or f"{len(test.tools)} tools in {test.seconds:.2f} s"
        yield Check(f"connect {name}", "ok" if test.works else "fail", detail)


def _try(name: str, detail: str, work: Callable[[], object]) -> Check:
    try:
        work()
    except GatewayError as error:
        return Check(name, "fail", str(error))
    return Check(name, "ok", detail)
