"""Plan for the installation of one server, with every command in full.

* A package gets its own folder, outside the gateway's environment.
* A command is a list of arguments without a shell.
* Installing runs no package code: only wheels from PyPI, and no scripts from npm.
* Secrets are references: ``${NAME}``, ``env:NAME``, ``keyring:SERVICE/NAME``.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from gateway.plugins.provision.registry_schema import Input, Package, RegistryEntry, Remote
from gateway.runtime.text import is_visible

_PLACEHOLDER = re.compile(r"\{([A-Za-z0-9_-]+)\}")
_INVALID_CHARS = re.compile(r"[^A-Za-z0-9_.-]+")
_MAX_NAME_CHARS = 40
_RUN_PIP = Path(__file__).with_name("run_pip.py").resolve()
Commands = tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Programs:
    """Programs that install and run packages; None if missing."""

    python: str = sys.executable
    pip: str | None = None
    """pip's runner script, with which another interpreter can run the pip of `python`."""
    uv: str | None = None
    npm: tuple[str, ...] | None = None
    """Command that starts npm."""
    node: str | None = None

    @classmethod
    def find(cls) -> Programs:
        """Search ``PATH`` for the programs."""
        pip = importlib.util.find_spec("pip")
        runner = Path(pip.origin or "").with_name("__pip-runner__.py") if pip else None
        uv, npm, node = (_which(name) for name in ("uv", "npm", "node"))
        return cls(
            pip=str(runner) if runner and runner.is_file() else None,
            uv=uv,
            npm=(npm,) if npm else None,
            node=node,
        )

    def pypi_commands(self, package: Package, folder: Path) -> Commands:
        """Return the commands that create a virtual environment in *folder* with *package*."""
        inside = str(bin_folder(folder) / ("python.exe" if sys.platform == "win32" else "python"))
        wheel = ("--only-binary", ":all:", f"{package.identifier}=={package.version}")
        if self.uv:
            venv = (self.uv, "venv", "--quiet", "--no-project", "--python", self.python)
            pip = (self.uv, "pip", "install", "--quiet", "--python", inside)
            return ((*venv, str(folder)), (*pip, *wheel))
        if self.pip is None:
            return ()
        # Compiling modules would take most of the time.
        flags = ("--quiet", "--no-compile", "--no-input", "--disable-pip-version-check")
        # -I keeps a file venv.py in the current folder from running.
        venv = (self.python, "-I", "-m", "venv", "--without-pip", str(folder))
        return (venv, (inside, "-I", str(_RUN_PIP), self.pip, "install", *flags, *wheel))

    def npm_commands(self, package: Package, folder: Path) -> Commands:
        """Return the command that installs *package* into *folder* without running scripts."""
        if self.npm is None:
            return ()
        # Scripts are package code, and git settings can name programs.
        safe = ("--ignore-scripts", "--allow-git=none")
        flags = (*safe, "--no-audit", "--no-fund", "--save-exact", "--omit=dev")
        requirement = f"{package.identifier}@{package.version}"
        return ((*self.npm, "install", "--prefix", str(folder), *flags, requirement),)


@dataclass(frozen=True, slots=True)
class Needs:
    """Inputs that the host still has to provide or confirm."""

    missing: tuple[str, ...] = ()
    """Required inputs without a value."""
    unsafe: tuple[str, ...] = ()
    """Reasons why values may not be used."""
    handed: tuple[str, ...] = ()
    """Environment variables that the server would get although the host did not name them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Plan for one way to install and run a server."""

    entry: RegistryEntry
    route: Package | Remote
    server: str
    """Name in the catalog."""
    folder: Path | None = None
    """Folder for the package; None for a remote server."""
    install: Commands = ()
    """Install commands, in order."""
    command: tuple[str, ...] = ()
    """Command that starts the server; empty if known only after the installation."""
    args: tuple[str, ...] = ()
    """Arguments after `command`."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Environment variables, with references for secrets."""
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    needs: Needs = field(default_factory=Needs)

    @property
    def launch(self) -> tuple[str, ...]:
        """Program and arguments of the server; empty if it is remote or not known yet."""
        return (*self.command, *self.args) if self.command else ()

    @property
    def kind(self) -> str:
        """Type of the package, such as ``pypi`` or ``npm``, or ``remote``."""
        return self.route.kind if isinstance(self.route, Package) else "remote"

    def config_entry(self) -> dict[str, object]:
        """Return the server's entry for ``mcp.json``."""
        if self.url:
            entry: dict[str, object] = {"type": "http", "url": self.url}
            return {**entry, "headers": dict(self.headers)} if self.headers else entry
        program, *args = self.launch
        entry = {"command": program, "args": args}
        return {**entry, "env": dict(self.env)} if self.env else entry


def make_plan(  # noqa: PLR0913  (keyword-only, all that a plan depends on)
    entry: RegistryEntry,
    route: Package | Remote,
    *,
    server: str,
    folder: Path,
    inputs: Mapping[str, str],
    environment: Mapping[str, str],
    programs: Programs,
) -> Plan:
    """Plan the installation of a package, or the use of a remote server.

    Args:
        entry: Registry entry of the server.
        route: Package or remote of *entry*.
        server: Name for the server in the catalog.
        folder: Folder for this package only.
        inputs: Values of arguments, variables, headers and placeholders, keyed by name.
        environment: Environment variables that are set.
        programs: Installers of this machine.
    """
    values = _InputValues(inputs, environment)
    plan = Plan(entry=entry, route=route, server=server)
    if isinstance(route, Remote):
        url = values.fill(route.url, route.variables)
        headers = {item.name: value for item, value in values.fill_each(route.headers)}
        return replace(plan, url=url, headers=headers, needs=values.needs())
    args: list[str] = []
    for item, value in values.fill_each(route.arguments):
        args += [item.flag, value] if item.flag else [value]
    pairs = values.fill_each(route.environment, from_environment=True)
    env = {item.name: value for item, value in pairs}
    plan = replace(plan, folder=folder, args=tuple(args), env=env, needs=values.needs())
    if route.kind == "pypi":
        command = (str(bin_folder(folder) / route.identifier),)
        return replace(plan, install=programs.pypi_commands(route, folder), command=command)
    if route.kind == "npm":
        return replace(plan, install=programs.npm_commands(route, folder))
    return plan


def server_name(entry: RegistryEntry, used: frozenset[str]) -> str:
    """Return the short name of *entry*, with a number if it is *used*."""
    base = _INVALID_CHARS.sub("-", entry.short)[:_MAX_NAME_CHARS].strip(".-") or "server"
    folded = {name.casefold() for name in used}
    number, name = 2, base
    while name.casefold() in folded:
        name, number = f"{base}-{number}", number + 1
    return name


def bin_folder(folder: Path) -> Path:
    """Return the folder with the programs of a virtual environment."""
    return folder / ("Scripts" if sys.platform == "win32" else "bin")


def _which(program: str) -> str | None:
    """Return the absolute path of *program*, because installing changes the working folder."""
    path = shutil.which(program)
    return str(Path(path).absolute()) if path else None


class _InputValues:
    """Fills the inputs of an entry with the host's values, and collects missing ones."""

    def __init__(self, inputs: Mapping[str, str], environment: Mapping[str, str]) -> None:
        self._inputs = inputs
        self._environment = environment
        self._missing: list[str] = []
        self._unsafe: list[str] = []
        self._environment_names: list[str] = []

    def needs(self) -> Needs:
        lists = (self._missing, self._unsafe, self._environment_names)
        return Needs(*(tuple(dict.fromkeys(items)) for items in lists))

    def fill_each(
        self, inputs: Sequence[Input], *, from_environment: bool = False
    ) -> list[tuple[Input, str]]:
        """Return the inputs that have a value, with their values. Record missing required ones.

        Args:
            inputs: Inputs of the registry entry.
            from_environment: True lets required inputs without a value refer to the environment
                variable of the same name, if set.
        """
        values: list[tuple[Input, str]] = []
        for item in inputs:
            self._check(item.flag or item.name)
            value = self._value(item)
            is_set = from_environment and item.name in self._environment
            if value is None and item.required and is_set:
                value = f"${{{item.name}}}"
                self._environment_names.append(item.name)
            if value is not None:
                values.append((item, value))
            elif item.required:
                self._missing.append(item.name or "an argument")
        return values

    def fill(self, template: str, variables: Sequence[Input]) -> str:
        """Return *template* with the values of *variables* in its placeholders.

        Other placeholders stay unchanged.
        """
        self._check(template)
        values = {item.name: self._value(item) for item in variables}
        self._missing += [
            name for name, value in values.items() if value is None and f"{{{name}}}" in template
        ]
        return _PLACEHOLDER.sub(lambda match: values.get(match[1]) or match[0], template)

    def _value(self, item: Input) -> str | None:
        if item.value is not None:
            return self.fill(item.value, item.variables)
        value = self._inputs.get(item.name) if item.name else None
        if value is None:
            self._check(item.default or "")
            return item.default
        if item.secret and not is_reference(value):
            self._unsafe.append(
                f"{item.name} is a secret; use a reference (${{NAME}}, env:NAME or keyring:…)"
            )
        return value

    def _check(self, text: str) -> None:
        # The configuration would replace a reference by one of the host's secrets.
        if is_reference(text):
            self._unsafe.append("the entry refers to the environment or the keyring")
        # A person must see the whole command before agreeing.
        if not is_visible(text):
            self._unsafe.append("the entry contains invisible characters")


def is_reference(text: str) -> bool:
    """Return whether the configuration would replace *text*, for example by a secret."""
    return "${" in text or text.startswith(("env:", "keyring:"))
