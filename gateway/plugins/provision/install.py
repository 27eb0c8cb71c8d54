"""Installation of a package, and search for its program. Package code does not run.

An install command runs without a shell or input, and with a time limit. It gets few variables
(such as ``PATH`` and the settings of pip, uv and npm), so that it cannot leak secrets in others.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from importlib.metadata import distributions
from pathlib import Path
from tempfile import TemporaryFile
from typing import TextIO

from gateway.errors import UpstreamError, UpstreamTimeoutError
from gateway.mcp.servers import StdioServer
from gateway.options.environment import variables
from gateway.plugins.provision.plan import Plan, Programs, bin_folder
from gateway.plugins.provision.registry_schema import Package
from gateway.runtime.text import clean

_INHERITED_VARIABLES = frozenset({
    "PATH", "SYSTEMROOT", "PIP_CACHE_DIR", "PIP_CERT", "PIP_CONFIG_FILE", "PIP_DEFAULT_TIMEOUT",
    "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_INDEX_URL", "PIP_NO_INDEX", "PIP_PROXY",
    "PIP_TRUSTED_HOST", "UV_CACHE_DIR", "UV_DEFAULT_INDEX", "UV_FIND_LINKS", "UV_INDEX",
    "UV_INDEX_URL", "npm_config_cache", "npm_config_cafile", "npm_config_registry",
    "npm_config_userconfig", "NPM_CONFIG_CACHE", "NPM_CONFIG_CAFILE", "NPM_CONFIG_REGISTRY",
    "NPM_CONFIG_USERCONFIG", "all_proxy", "http_proxy", "https_proxy", "no_proxy", "ALL_PROXY",
    "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE",
    "SSL_CERT_DIR", "SSL_CERT_FILE",
})  # fmt: skip
"""Environment variables of an installer, in addition to HOME and similar ones."""

_UMASK = 0o077
_MESSAGE_CHARS = 600
_TAIL_BYTES = 16_000
_USERINFO = re.compile(r"://[^/\s@]+@")
_SEPARATORS = re.compile(r"[-_.]+")


async def install(
    plan: Plan, programs: Programs, *, limit_s: float
) -> tuple[Plan, tuple[str, ...]]:
    """Run the install commands of *plan* and find the program that starts the server.

    Args:
        plan: Plan for a package, with an empty folder.
        programs: Installers of this machine.
        limit_s: Time limit of each command, in seconds.

    Returns:
        The plan with the exact command of the server, and all packages as ``name==version``,
        sorted.

    Raises:
        UpstreamError: If a command fails, or the package has no program.
        UpstreamTimeoutError: If a command exceeds the time limit.
    """
    route, folder = plan.route, plan.folder
    if not isinstance(route, Package) or folder is None:
        raise AssertionError(plan.kind)
    path = str(Path(programs.node).parent) if programs.node else ""
    for command in plan.install:
        await run_command(plan.server, command, folder=folder, path=path, limit_s=limit_s)
    if route.kind == "pypi":
        program, packages = _find_python_program(plan.server, route, folder)
        command = (str(program),)
    else:
        script, packages = _find_npm_program(plan.server, route, folder)
        command = (str(programs.node), str(script))
    return replace(plan, command=command), tuple(sorted(packages))


async def run_command(
    server: str, command: Sequence[str], *, folder: Path, path: str, limit_s: float
) -> None:
    """Run *command* and wait until it ends.

    Args:
        server: Name of the server, for messages.
        command: Program and arguments.
        folder: Working folder.
        path: Folder before the inherited ``PATH``, or empty.
        limit_s: Seconds after which the process group is killed.

    Raises:
        UpstreamError: If the command cannot be started, or fails with the quoted output.
        UpstreamTimeoutError: If the command exceeds the time limit.
    """
    from gateway.mcp.stdio import start_process, stop_process  # noqa: PLC0415  (mcp is heavy, and a plan needs none)

    program, *args = command
    name = Path(program).name
    inherited = variables(_INHERITED_VARIABLES)
    parts = (path, inherited.pop("PATH", os.defpath))
    env = {**inherited, "PATH": os.pathsep.join(part for part in parts if part)}
    target = StdioServer(program, tuple(args), env=env, cwd=folder)
    with TemporaryFile("w+", encoding="utf-8", errors="replace") as errors:
        try:
            process = await start_process(target, errors, umask=_UMASK)
        except (OSError, ValueError) as error:
            detail = f"{name} cannot be started: {type(error).__name__}"
            raise UpstreamError(server, detail, kind="config", sent=False) from error
        try:
            async with asyncio.timeout(limit_s):
                await process.communicate(b"")
        except TimeoutError as error:
            detail = f"{name} did not end within {limit_s} s"
            raise UpstreamTimeoutError(server, detail) from error
        finally:
            await stop_process(process, grace_s=0.2)
        if process.returncode != 0:
            raise UpstreamError(
                server, f"{name} failed ({process.returncode}): {_output_tail(errors)}"
            )


def _output_tail(errors: TextIO) -> str:
    errors.seek(0, os.SEEK_END)
    errors.seek(max(errors.tell() - _TAIL_BYTES, 0))
    output = _USERINFO.sub("://***@", errors.read())[-2 * _MESSAGE_CHARS :]
    return clean(output, limit=2 * _MESSAGE_CHARS)[-_MESSAGE_CHARS:] or "no output"


def _find_python_program(server: str, package: Package, folder: Path) -> tuple[Path, Iterable[str]]:
    """Return the path of the Python package's program, and all packages in the folder."""
    paths = [str(path) for path in folder.glob("[Ll]ib*/**/site-packages")]
    by_name = {_normalize(item.name): item for item in distributions(path=paths)}
    distribution = by_name.get(_normalize(package.identifier))
    if distribution is None:
        raise UpstreamError(server, f"{package.identifier!r} is missing after its installation")
    scripts = [item.name for item in distribution.entry_points if item.group == "console_scripts"]
    packages = (f"{item.name}=={item.version}" for item in by_name.values())
    name = _select_program(server, scripts, package.identifier)
    suffix = ".exe" if sys.platform == "win32" else ""
    return _confine(server, f"{name}{suffix}", bin_folder(folder), folder), packages


def _find_npm_program(server: str, package: Package, folder: Path) -> tuple[Path, Iterable[str]]:
    """Return the path of the npm package's script, and all packages in the folder."""
    home = folder / "node_modules" / package.identifier
    try:
        manifest = json.loads((home / "package.json").read_bytes())
        lock = json.loads((folder / "node_modules" / ".package-lock.json").read_bytes())
        version, programs = manifest["version"], manifest.get("bin", {})
        packages = [
            f"{key.rpartition('node_modules/')[2]}=={item.get('version', '')}"
            for key, item in lock["packages"].items()
        ]
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        detail = "package.json of the installed package cannot be read"
        raise UpstreamError(server, detail) from error
    if version != package.version:
        raise UpstreamError(server, f"{package.identifier!r} was installed in another version")
    own_name = package.identifier.rpartition("/")[2]
    if isinstance(programs, str):
        programs = {own_name: programs}
    name = str(programs[_select_program(server, list(programs), own_name)])
    return _confine(server, name, home, folder), packages


def _confine(server: str, name: str, home: Path, folder: Path) -> Path:
    """Return the path of the file *name* in *home*, with links resolved.

    Raises:
        UpstreamError: If *name* is not a file in *home*, or *home* is not in *folder*.
    """
    resolved = home.resolve()
    path = (resolved / name).resolve()
    is_inside = path.is_relative_to(resolved) and resolved.is_relative_to(folder.resolve())
    if not is_inside or not path.is_file():
        raise UpstreamError(server, "the package's program is not a file in its folder")
    return path


def _select_program(server: str, names: Sequence[str], wanted: str) -> str:
    """Return the program named like the package (*wanted*), else the only one of *names*."""
    alike = [name for name in names if _normalize(name) == _normalize(wanted)]
    for choices in ([wanted] if wanted in names else alike, names):
        if len(choices) == 1:
            return choices[0]
    all_names = ", ".join(sorted(names))
    detail = f"has the programs {all_names}, but none has its name" if names else "has no program"
    raise UpstreamError(server, f"the package {detail}")


def _normalize(name: str) -> str:
    return _SEPARATORS.sub("-", name).casefold()
