"""A server as another client has it -> an entry of our file. Secrets become variables. Pure."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from gateway.errors import ConfigError
from gateway.manifests.secret_scanner import Span, disclosed, doubtful, in_arguments

_KEPT = ("command", "args", "env", "cwd", "url", "headers", "disabled")
_SILENT = frozenset({"type", "name", "description", "gallery", "version", "transport"})
"""Keys of other clients that say nothing that is missed."""
_VARIABLE = re.compile(r"\$\{([^}]+)\}")
_PLAIN = re.compile(r"(?:env:)?[A-Za-z_][A-Za-z0-9_]*(?::-.*)?", re.DOTALL)
_FOREIGN = re.compile(r"[^A-Za-z0-9_.-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A variable that must be set before a server can be used."""

    variable: str
    server: str
    where: str
    """Where its value stood, such as ``env.API_KEY``, or what it is asked for."""


@dataclass(slots=True, kw_only=True)
class Conversion:
    """Entries become ours one after another; equal secrets share a variable."""

    inputs: Mapping[str, str] = field(default_factory=dict)
    """What VS Code asks for, by id."""
    project: Path | None = None
    wanted: list[Wanted] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    values: dict[str, str] = field(default_factory=dict)
    """The secret of each variable. Never shown, never written."""

    def entry(self, name: str, given: object) -> dict[str, object]:
        """Give our entry for *given*.

        Raises:
            ConfigError: It is no server that we could use.
        """
        if not isinstance(given, dict):
            raise ConfigError("it is no object")
        made = {key: given[key] for key in _KEPT if key in given}
        address = given.get("serverUrl")
        if isinstance(address, str):
            made.setdefault("url", address)
        if given.get("type") == "sse" or given.get("transport") == "sse":
            raise ConfigError("it speaks SSE, which is not supported: ask for its streamable HTTP")
        if not isinstance(made.get("command", made.get("url")), str):
            raise ConfigError("it has neither a command nor a url")
        left = sorted(given.keys() - set(_KEPT) - _SILENT - {"serverUrl"})
        if left:
            self.notes.append(f"{name}: left out: {', '.join(left)}")
        return {key: self._value(name, key, value) for key, value in made.items()}

    def _value(self, server: str, key: str, value: object) -> object:
        if isinstance(value, list):
            return self._arguments(server, [self._text(server, str(each)) for each in value])
        if isinstance(value, dict):
            return {
                inner: self._hidden(server, f"{key}.{inner}", inner, self._text(server, str(text)))
                for inner, text in value.items()
            }
        if not isinstance(value, str):
            return value
        text = self._text(server, value)
        return self._hidden(server, key, key, text) if key == "url" else text

    def _text(self, server: str, text: str) -> str:
        """Write the variables of other clients as ours."""
        return _VARIABLE.sub(lambda found: self._variable(server, found[0], found[1]), text)

    def _variable(self, server: str, whole: str, name: str) -> str:
        if name.startswith("input:"):
            known = name.removeprefix("input:")
            variable = _variable(known)
            told = self.inputs.get(known) or f"the input {known!r} of VS Code"
            self._want(variable, server, told)
            return f"${{{variable}}}"
        if _PLAIN.fullmatch(name) and name not in {"userHome", "workspaceFolder", "pathSeparator"}:
            return f"${{{name.removeprefix('env:')}}}"
        if name == "userHome":
            return "${HOME}"
        if name in {"pathSeparator", "/"}:
            return os.sep
        if name == "workspaceFolder" and self.project is not None:
            return str(self.project)
        self.notes.append(f"{server}: {whole} is not known here: write what it stands for")
        return whole

    def _arguments(self, server: str, arguments: list[str]) -> list[str]:
        for place, name, span in in_arguments(list(arguments)):
            told = f"args[{place}]"
            arguments[place] = self._replaced(server, told, name, arguments[place], span)
        for place, text in enumerate(arguments):
            self._doubt(server, f"args[{place}]", text)
        return arguments

    def _hidden(self, server: str, where: str, name: str, text: str) -> str:
        span = disclosed(name, text)
        if span is not None:
            return self._replaced(server, where, name, text, span)
        self._doubt(server, where, text)
        return text

    def _doubt(self, server: str, where: str, text: str) -> None:
        if doubtful(text):
            self.notes.append(
                f"{server}: {where} looks random; if it is a secret, write ${{NAME}} instead"
            )

    def _replaced(self, server: str, where: str, name: str, text: str, span: Span) -> str:
        start, end = span
        secret = text[start:end]
        variable = self._named(server, where, name, secret)
        self._want(variable, server, where)
        return f"{text[:start]}${{{variable}}}{text[end:]}"

    def _named(self, server: str, where: str, name: str, secret: str) -> str:
        for variable, value in self.values.items():
            if value == secret:
                return variable
        own = _variable(f"{server}_{name or 'secret'}")
        plain = _variable(name) if where.startswith("env.") else own
        count = 1
        variable = plain
        while variable in self.values:
            variable = own if count == 1 else f"{own}_{count}"
            count += 1
        self.values[variable] = secret
        return variable

    def _want(self, variable: str, server: str, where: str) -> None:
        wanted = Wanted(variable=variable, server=server, where=where)
        if wanted not in self.wanted:
            self.wanted.append(wanted)


def usable_name(name: str) -> str:
    """Give the name that a server called *name* elsewhere may have here."""
    return _FOREIGN.sub("-", name).strip("-.")[:64] or "server"


def is_ours(entry: object) -> bool:
    """Say whether *entry* starts this gateway."""
    if not isinstance(entry, dict):
        return False
    command, args = entry.get("command"), entry.get("args")
    words = [str(each) for each in args] if isinstance(args, list) else []
    program = re.split(r"[\\/]", str(command))[-1].removesuffix(".exe")
    return (program == "gateway" and words[:1] == ["serve"]) or (
        words[:3] == ["-m", "gateway", "serve"]
    )


def _variable(name: str) -> str:
    plain = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_").upper()
    return plain if plain and not plain[0].isdigit() else f"SECRET_{plain}"
