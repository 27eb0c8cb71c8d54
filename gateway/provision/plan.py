"""What would be done to get one server: every command whole, before anybody is asked. Pure.

* A package gets a folder of its own; nothing enters the environment that the gateway runs in.
* A command is a list of arguments: no shell ever reads it.
* Nothing of a package runs while it is installed: wheels alone from PyPI, no scripts from npm.
* Secrets stand in a plan as references: ``${NAME}``, ``env:NAME``, ``keyring:SERVICE/NAME``.
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from gateway.provision.entries import Entry, Input, Package, Remote
from gateway.provision.programs import Programs

_PLACEHOLDER = re.compile(r"\{([A-Za-z0-9_-]+)\}")
_OTHER_CHARS = re.compile(r"[^A-Za-z0-9_.-]+")
_MAX_NAME_CHARS = 40
Commands = tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What stands between an entry's inputs and what the host gave."""

    missing: tuple[str, ...] = ()
    """What it needs and nobody gave."""
    unsafe: tuple[str, ...] = ()
    """Why a value may not be used as it is."""
    handed: tuple[str, ...] = ()
    """Variables of this environment that it asks for and would get, though nobody named them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One way to one server."""

    entry: Entry
    route: Package | Remote
    server: str
    """How it will be called here."""
    folder: Path | None = None
    """Where the package will live; None for a remote server."""
    install: Commands = ()
    """What will be run to install it, in this order."""
    command: tuple[str, ...] = ()
    """What will be run as the server; empty as long as only the installed package tells."""
    args: tuple[str, ...] = ()
    """What will stand behind the command."""
    env: Mapping[str, str] = field(default_factory=dict)
    """What the server's process is given, as references where it is secret."""
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    needs: Needs = field(default_factory=Needs)

    @property
    def launch(self) -> tuple[str, ...]:
        """Program and arguments of the server; empty for a remote one, and if not known yet."""
        return (*self.command, *self.args) if self.command else ()

    @property
    def kind(self) -> str:
        """``pypi``, ``npm``, …, or ``remote``."""
        return self.route.kind if isinstance(self.route, Package) else "remote"

    def configured(self) -> dict[str, object]:
        """Give the server as an entry of ``mcp.json``."""
        if self.url:
            entry: dict[str, object] = {"type": "http", "url": self.url}
            return {**entry, "headers": dict(self.headers)} if self.headers else entry
        program, *args = self.launch
        entry = {"command": program, "args": args}
        return {**entry, "env": dict(self.env)} if self.env else entry


def written(command: Sequence[str]) -> str:
    """Write *command* whole, quoted as a POSIX shell would need it, so that its parts are seen."""
    return shlex.join(command)


def make(  # noqa: PLR0913  (keyword-only, all that a plan depends on)
    entry: Entry,
    route: Package | Remote,
    *,
    server: str,
    folder: Path,
    inputs: Mapping[str, str],
    given: Mapping[str, str],
    programs: Programs,
) -> Plan:
    """Plan how *entry* comes in by *route*.

    Args:
        entry: The server.
        route: One of its packages or remotes.
        server: How it will be called here.
        folder: What no other package uses.
        inputs: What the host gives, by name: arguments, variables, headers, placeholders.
        given: The environment variables that are set.
        programs: What installs and runs here.
    """
    fill = _Filling(inputs=inputs, given=given)
    if isinstance(route, Remote):
        url = fill.text(route.url, route.variables)
        headers = fill.named(route.headers, from_environment=False)
        return replace(
            Plan(entry=entry, route=route, server=server, url=url, headers=headers),
            needs=fill.needs(),
        )
    plan = Plan(
        entry=entry,
        route=route,
        server=server,
        folder=folder,
        args=tuple(fill.arguments(route.arguments)),
        env=fill.named(route.environment, from_environment=True),
    )
    return replace(_installed(plan, route, folder, programs), needs=fill.needs())


def server_name(entry: Entry, taken: frozenset[str]) -> str:
    """Give the name that *entry* gets here: its own, with a number if that is taken."""
    name = _OTHER_CHARS.sub("-", entry.short)[:_MAX_NAME_CHARS].strip(".-") or "server"
    folded = {each.casefold() for each in taken}
    number, found = 2, name
    while found.casefold() in folded:
        found, number = f"{name}-{number}", number + 1
    return found


def bin_folder(folder: Path) -> Path:
    """Say where the programs of a virtual environment lie."""
    return folder / ("Scripts" if sys.platform == "win32" else "bin")


def _installed(plan: Plan, package: Package, folder: Path, programs: Programs) -> Plan:
    if package.kind == "pypi":
        script = str(bin_folder(folder) / (package.script or package.identifier))
        return replace(plan, install=programs.pypi(package, folder), command=(script,))
    if package.kind == "npm":
        return replace(plan, install=programs.npm_install(package, folder))
    return plan


class _Filling:
    """Puts what the host gives into the places of an entry, and notes what is missing."""

    def __init__(self, *, inputs: Mapping[str, str], given: Mapping[str, str]) -> None:
        self._inputs = inputs
        self._given = given
        self._missing: list[str] = []
        self._unsafe: list[str] = []
        self._handed: list[str] = []

    def needs(self) -> Needs:
        found = (self._missing, self._unsafe, self._handed)
        missing, unsafe, handed = (tuple(dict.fromkeys(each)) for each in found)
        return Needs(missing=missing, unsafe=unsafe, handed=handed)

    def arguments(self, wanted: Sequence[Input]) -> list[str]:
        found: list[str] = []
        for each in wanted:
            self._check(each.flag)
            value = self._value(each)
            if value is not None:
                found += [each.flag, value] if each.flag else [value]
            elif each.required:
                self._missing.append(each.name or "an argument")
        return found

    def named(self, wanted: Sequence[Input], *, from_environment: bool) -> dict[str, str]:
        found: dict[str, str] = {}
        for each in wanted:
            self._check(each.name)
            value = self._value(each)
            if value is None and from_environment and each.required and each.name in self._given:
                value = f"${{{each.name}}}"
                self._handed.append(each.name)
            if value is not None:
                found[each.name] = value
            elif each.required:
                self._missing.append(each.name)
        return found

    def text(self, template: str, variables: Sequence[Input]) -> str:
        """Fill the placeholders of *template*; those that nobody declared stay."""
        self._check(template)
        values = {each.name: self._value(each) for each in variables}
        self._missing += [
            each.name
            for each in variables
            if values[each.name] is None and f"{{{each.name}}}" in template
        ]
        return _PLACEHOLDER.sub(lambda found: values.get(found[1]) or found[0], template)

    def _value(self, wanted: Input) -> str | None:
        if wanted.value is not None:
            return self.text(wanted.value, wanted.variables)
        own = self._inputs.get(wanted.name) if wanted.name else None
        if own is None:
            self._check(wanted.default or "")
            return wanted.default
        if wanted.secret and not is_reference(own):
            self._unsafe.append(f"{wanted.name} is a secret: give ${{NAME}}, env:NAME or keyring:…")
        return own

    def _check(self, text: str) -> None:
        # What the entry says would be expanded with the host's own secrets.
        if is_reference(text):
            self._unsafe.append("the entry refers to the environment or the keyring")
        # Who agrees to a command must have seen all of it.
        if not text.isprintable():
            self._unsafe.append("the entry holds characters that nobody can see")


def is_reference(text: str) -> bool:
    """Say whether a configuration would read something else in the place of *text*."""
    return "${" in text or text.startswith(("env:", "keyring:"))
