"""Installs what a plan says, and reads from the files what will run. Runs nothing of them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.metadata import Distribution, distributions
from pathlib import Path

from gateway.errors import UpstreamError
from gateway.provision.entries import Package
from gateway.provision.plan import Plan, bin_folder
from gateway.provision.programs import Programs
from gateway.provision.run import run

_SEPARATORS = re.compile(r"[-_.]+")
_MAX_MANIFEST_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """What an install left behind."""

    plan: Plan
    """With the very command that will run."""
    packages: tuple[str, ...]
    """``name==version`` of everything in the folder, by name."""


async def install(plan: Plan, programs: Programs, *, limit_s: float) -> Installed:
    """Run the install commands of *plan* and find the server's program.

    Args:
        plan: Of a package; its folder exists and is empty.
        programs: What installs here.
        limit_s: For each command.

    Raises:
        UpstreamError: A command failed, or the package has no program to run.
        UpstreamTimeoutError: A command took too long.
    """
    route, folder = plan.route, plan.folder
    if not isinstance(route, Package) or folder is None:
        raise AssertionError(plan.kind)
    path = str(Path(programs.node).parent) if programs.node else ""
    for command in plan.install:
        await run(plan.server, command, folder=folder, path=path, limit_s=limit_s)
    if route.kind == "pypi":
        return _pypi(plan, route, folder)
    return _npm(plan, route, folder, programs)


def _pypi(plan: Plan, package: Package, folder: Path) -> Installed:
    places = [str(each) for each in folder.glob("[Ll]ib*/**/site-packages")]
    known = {_folded(each.name): each for each in distributions(path=places)}
    own = known.get(_folded(package.identifier))
    if own is None:
        raise UpstreamError(plan.server, f"{package.identifier!r} is not there after its install")
    script = _chosen(plan, _scripts(own), package.script or package.identifier)
    listed = sorted(f"{each.name}=={each.version}" for each in known.values())
    command = (str(bin_folder(folder) / script),)
    return Installed(plan=replace(plan, command=command), packages=tuple(listed))


def _scripts(own: Distribution) -> list[str]:
    return sorted(each.name for each in own.entry_points if each.group == "console_scripts")


def _npm(plan: Plan, package: Package, folder: Path, programs: Programs) -> Installed:
    home = folder / "node_modules" / package.identifier
    said = _read(plan, home / "package.json")
    if said.get("version") != package.version:
        raise UpstreamError(plan.server, f"{package.identifier!r} came in another version")
    program = said.get("bin")
    own_name = package.identifier.rpartition("/")[2]
    table = {own_name: program} if isinstance(program, str) else program
    names = sorted(table) if isinstance(table, dict) else []
    script = str(table[_chosen(plan, names, own_name)]) if isinstance(table, dict) else ""
    path = (home / script).resolve()
    if not script or not path.is_relative_to(home.resolve()) or not path.is_file():
        raise UpstreamError(plan.server, "the package's program is not a file of its own")
    listed = _locked(_read(plan, folder / "node_modules" / ".package-lock.json"))
    return Installed(plan=replace(plan, command=(str(programs.node), str(path))), packages=listed)


def _locked(lock: Mapping[str, object]) -> tuple[str, ...]:
    table = lock.get("packages")
    rows = table.items() if isinstance(table, dict) else ()
    return tuple(
        sorted(
            f"{place.rpartition('node_modules/')[2]}=={each.get('version', '')}"
            for place, each in rows
            if isinstance(each, dict)
        )
    )


def _chosen(plan: Plan, names: list[str], wanted: str) -> str:
    """Give the program of the package's own name, or its only one."""
    alike = [name for name in names if _folded(name) == _folded(wanted)]
    for found in ([wanted] if wanted in names else alike, names):
        if len(found) == 1:
            return found[0]
    told = f"has the programs {', '.join(names)}: none is called like it" if names else "has none"
    raise UpstreamError(plan.server, f"the package {told}")


def _read(plan: Plan, path: Path) -> Mapping[str, object]:
    try:
        with path.open("rb") as file:
            read = json.loads(file.read(_MAX_MANIFEST_BYTES))
    except (OSError, ValueError) as error:
        told = f"{path.name} of the installed package cannot be read"
        raise UpstreamError(plan.server, told) from error
    return read if isinstance(read, dict) else {}


def _folded(name: str) -> str:
    return _SEPARATORS.sub("-", name).casefold()
