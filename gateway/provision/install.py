"""Install a package, and read from its files which program is the server. Runs nothing of it.

An install command gets no shell, few variables, no input and a time limit. The user's settings of
pip, uv and npm apply: mirrors, proxies, certificates, caches. It gets nothing else of the
environment, so an installer cannot leak a secret.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import distributions
from pathlib import Path
from tempfile import TemporaryFile
from typing import TextIO

from gateway.errors import UpstreamError, UpstreamTimeoutError
from gateway.mcp.servers import StdioServer
from gateway.options.environment import variables
from gateway.provision.plan import Plan, Programs, bin_folder
from gateway.provision.registry_schema import Package
from gateway.runtime.text import clean

_PIP = (
    "CACHE_DIR", "CERT", "CONFIG_FILE", "DEFAULT_TIMEOUT", "EXTRA_INDEX_URL", "FIND_LINKS",
    "INDEX_URL", "NO_INDEX", "PROXY", "TRUSTED_HOST",
)  # fmt: skip
_UV = ("CACHE_DIR", "DEFAULT_INDEX", "FIND_LINKS", "INDEX", "INDEX_URL")
_NPM = ("cache", "cafile", "registry", "userconfig")
_PROXIES = ("all_proxy", "http_proxy", "https_proxy", "no_proxy")
_CERTIFICATES = ("NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "SSL_CERT_DIR", "SSL_CERT_FILE")
_INHERITED = frozenset(
    {
        *(f"PIP_{name}" for name in _PIP),
        *(f"UV_{name}" for name in _UV),
        *(f"npm_config_{name}" for name in _NPM),
        *(f"NPM_CONFIG_{name.upper()}" for name in _NPM),
        *_PROXIES,
        *(name.upper() for name in _PROXIES),
        *_CERTIFICATES,
        "PATH",
        "SYSTEMROOT",
    }
)
"""The variables that an installer inherits, beside HOME and its like."""

_MESSAGE_CHARS = 600
_TAIL_BYTES = 16_000
_CHUNK_BYTES = 1 << 16
_MAX_MANIFEST_BYTES = 1024 * 1024
_USERINFO = re.compile(r"://[^/\s@]+@")
_SEPARATORS = re.compile(r"[-_.]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class InstalledPackage:
    """The result of an install."""

    plan: Plan
    """With the exact command of the server."""
    packages: tuple[str, ...]
    """``name==version`` of everything in the folder, by name."""


async def install(plan: Plan, programs: Programs, *, limit_s: float) -> InstalledPackage:
    """Run the install commands of *plan* and find the server's program.

    Args:
        plan: Of a package; its folder exists and is empty.
        programs: What installs here.
        limit_s: For each command.

    Raises:
        UpstreamError: A command failed, or the package has no program.
        UpstreamTimeoutError: A command took too long.
    """
    route, folder = plan.route, plan.folder
    if not isinstance(route, Package) or folder is None:
        raise AssertionError(plan.kind)
    path = str(Path(programs.node).parent) if programs.node else ""
    for command in plan.install:
        await run_command(plan.server, command, folder=folder, path=path, limit_s=limit_s)
    if route.kind == "pypi":
        return _find_python_program(plan, route, folder)
    return _find_npm_program(plan, route, folder, str(programs.node))


async def run_command(
    server: str, command: Sequence[str], *, folder: Path, path: str, limit_s: float
) -> None:
    """Run *command* to its end.

    Args:
        server: For messages.
        command: Program and arguments.
        folder: Its working folder.
        path: Put before the search path that it inherits.
        limit_s: Its time limit; then its whole process group is ended.

    Raises:
        UpstreamError: It cannot be started, or failed; the message holds the end of its output.
        UpstreamTimeoutError: It took too long.
    """
    from gateway.mcp.stdio import start_process, stop_process  # noqa: PLC0415  (mcp is heavy, and a plan needs none)

    program, *args = command
    name = Path(program).name
    inherited = variables(_INHERITED)
    parts = (path, inherited.pop("PATH", os.defpath))
    env = {**inherited, "PATH": os.pathsep.join(part for part in parts if part)}
    target = StdioServer(program, tuple(args), env=env, cwd=folder)
    with TemporaryFile("w+", encoding="utf-8", errors="replace") as errors:
        try:
            process = await start_process(target, errors)
        except (OSError, ValueError) as error:
            detail = f"{name} cannot be started: {type(error).__name__}"
            raise UpstreamError(server, detail, kind="config", sent=False) from error
        try:
            async with asyncio.timeout(limit_s):
                code = await _drain(process)
        except TimeoutError as error:
            detail = f"{name} did not end within {limit_s} s"
            raise UpstreamTimeoutError(server, detail) from error
        finally:
            await stop_process(process, grace_s=0.2)
        if code != 0:
            raise UpstreamError(server, f"{name} failed ({code}): {_tail(errors)}")


async def _drain(process: asyncio.subprocess.Process) -> int:
    # A full pipe would stop the installer.
    assert process.stdin is not None  # noqa: S101  (both are pipes: for the type checker)
    assert process.stdout is not None  # noqa: S101
    process.stdin.close()
    while await process.stdout.read(_CHUNK_BYTES):
        pass
    return await process.wait()


def _tail(errors: TextIO) -> str:
    errors.seek(0, os.SEEK_END)
    errors.seek(max(errors.tell() - _TAIL_BYTES, 0))
    output = _USERINFO.sub("://***@", errors.read())[-2 * _MESSAGE_CHARS :]
    return clean(output, limit=2 * _MESSAGE_CHARS)[-_MESSAGE_CHARS:] or "it said nothing"


def _find_python_program(plan: Plan, package: Package, folder: Path) -> InstalledPackage:
    paths = [str(path) for path in folder.glob("[Ll]ib*/**/site-packages")]
    by_name = {_normalize(item.name): item for item in distributions(path=paths)}
    own = by_name.get(_normalize(package.identifier))
    if own is None:
        raise UpstreamError(plan.server, f"{package.identifier!r} is not there after its install")
    scripts = sorted(item.name for item in own.entry_points if item.group == "console_scripts")
    script = _select_program(plan, scripts, package.script or package.identifier)
    packages = sorted(f"{item.name}=={item.version}" for item in by_name.values())
    command = (str(bin_folder(folder) / script),)
    return InstalledPackage(plan=replace(plan, command=command), packages=tuple(packages))


def _find_npm_program(plan: Plan, package: Package, folder: Path, node: str) -> InstalledPackage:
    home = folder / "node_modules" / package.identifier
    manifest = _read_json(plan, home / "package.json")
    if manifest.get("version") != package.version:
        raise UpstreamError(plan.server, f"{package.identifier!r} came in another version")
    own_name = package.identifier.rpartition("/")[2]
    programs = manifest.get("bin")
    if isinstance(programs, str):
        programs = {own_name: programs}
    script = ""
    if isinstance(programs, dict):
        script = str(programs[_select_program(plan, sorted(programs), own_name)])
    path = (home / script).resolve()
    if not script or not path.is_relative_to(home.resolve()) or not path.is_file():
        raise UpstreamError(plan.server, "the package's program is not a file of its own")
    lock = _read_json(plan, folder / "node_modules" / ".package-lock.json").get("packages")
    packages = sorted(
        f"{key.rpartition('node_modules/')[2]}=={item.get('version', '')}"
        for key, item in (lock.items() if isinstance(lock, dict) else ())
        if isinstance(item, dict)
    )
    command = (node, str(path))
    return InstalledPackage(plan=replace(plan, command=command), packages=tuple(packages))


def _select_program(plan: Plan, names: list[str], wanted: str) -> str:
    """Return the program with the package's own name, or its only one."""
    alike = [name for name in names if _normalize(name) == _normalize(wanted)]
    for choices in ([wanted] if wanted in names else alike, names):
        if len(choices) == 1:
            return choices[0]
    detail = f"has the programs {', '.join(names)}: none is called like it" if names else "has none"
    raise UpstreamError(plan.server, f"the package {detail}")


def _read_json(plan: Plan, path: Path) -> Mapping[str, object]:
    try:
        with path.open("rb") as file:
            document = json.loads(file.read(_MAX_MANIFEST_BYTES))
    except (OSError, ValueError) as error:
        detail = f"{path.name} of the installed package cannot be read"
        raise UpstreamError(plan.server, detail) from error
    return document if isinstance(document, dict) else {}


def _normalize(name: str) -> str:
    return _SEPARATORS.sub("-", name).casefold()
