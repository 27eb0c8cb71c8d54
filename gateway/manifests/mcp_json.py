"""`mcp.json` -> servers. The de-facto format, read strictly where it matters.

* Top key ``mcpServers`` or, as VS Code has it, ``servers``.
* ``${VAR}``, ``env:VAR``, ``${env:VAR}`` and ``${VAR:-default}`` are taken from the environment,
  ``keyring:SERVICE/NAME`` from the keyring; what is not there and has no default makes that
  server unusable, not the file.
* A fault of one server leaves the others; an unknown key is a warning.
* ``tools`` of a server and the table ``virtualServers`` are ours; see `gateway.manifests.shaping`.
  So is the table ``kinds``; see `gateway.manifests.declared`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from gateway.errors import ConfigError
from gateway.manifests.authorization import read_auth
from gateway.manifests.declared import read_kinds
from gateway.manifests.jsonc import parse
from gateway.manifests.manifest import Manifest
from gateway.manifests.secrets import as_variable, from_keyring, is_keyring, literal_secrets
from gateway.manifests.shaping import SHAPED, read_shapes, read_virtual
from gateway.mcp.naming import check_server_name
from gateway.mcp.servers import HttpServer, StdioServer
from gateway.options.environment import variables
from gateway.sources.protocol import Shape
from gateway.sources.virtual_servers import VirtualServer
from gateway.types import Diagnostic

_VARIABLE = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_STDIO_KEYS = frozenset({"command", "args", "env", "cwd", "type", "disabled", "description"})
_HTTP_KEYS = frozenset({"url", "headers", "auth", "type", "disabled", "description"})
_OWN_KEYS = frozenset(SHAPED)
_TYPES = {"stdio": "stdio", "http": "http", "streamable-http": "http", "streamableHttp": "http"}
_TOP_KEYS = frozenset({"mcpServers", "servers", "virtualServers", "kinds", "inputs", "$schema"})


def read_manifest(path: Path) -> Manifest:
    """Read an ``mcp.json``.

    Raises:
        ConfigError: If the file is missing, is not JSON, or holds no table of servers.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise ConfigError(
            f"no configuration at {str(path)!r}: write one with a table 'mcpServers', "
            "or name another file"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{str(path)!r} cannot be read: {error}") from error
    whole = parse(text, where=str(path))
    return replace(parse_manifest(whole, where=path.name), origin=str(path.resolve()))


def parse_manifest(whole: object, *, where: str = "mcp.json") -> Manifest:
    """Read the parsed JSON of an ``mcp.json``.

    Raises:
        ConfigError: If it holds no table of servers.
    """
    table = whole.get("mcpServers", whole.get("servers")) if isinstance(whole, dict) else None
    if not isinstance(whole, dict) or not isinstance(table, dict):
        raise ConfigError(f"{where!r} needs an object 'mcpServers' (or 'servers') at its top")
    notes = [_note(f"{where}: unknown key {key!r}") for key in whole if key not in _TOP_KEYS]
    found = _Found(where, notes)
    for name, entry in table.items():
        found.server(name, entry)
    virtual = whole.get("virtualServers", {})
    if not isinstance(virtual, dict):
        raise ConfigError(f"{where!r}: 'virtualServers' must be an object")
    for name, entry in virtual.items():
        found.virtual_server(name, entry)
    return Manifest(
        kinds=read_kinds(whole.get("kinds", {})),
        servers=found.servers,
        warnings=tuple(notes),
        unusable=tuple(found.unusable),
        shapes=found.shapes,
        virtual=found.virtual,
    )


class _Found:
    """What was read until now. A fault of one entry is a note."""

    def __init__(self, where: str, notes: list[Diagnostic]) -> None:
        self._where = where
        self._notes = notes
        self.servers: dict[str, StdioServer | HttpServer] = {}
        self.shapes: dict[str, tuple[Shape, ...]] = {}
        self.virtual: dict[str, VirtualServer] = {}
        self.unusable: list[str] = []

    def server(self, name: str, entry: object) -> None:
        with self._told(name):
            check_server_name(name)
            server = _server(name, entry, self._notes)
            if server is not None and isinstance(entry, dict):
                shapes = tuple(
                    shape
                    for key, kind in SHAPED.items()
                    for shape in read_shapes(f"server {name!r}: {key}", entry.get(key), kind=kind)
                )
                self.servers[name] = server
                if shapes:
                    self.shapes[name] = shapes

    def virtual_server(self, name: str, entry: object) -> None:
        with self._told(name):
            if name in self.servers:
                raise ConfigError(f"virtual server {name!r} has the name of a server: rename it")
            table = read_virtual(name, entry)
            if table is not None:
                self.virtual[name] = table

    @contextmanager
    def _told(self, name: str) -> Iterator[None]:
        try:
            yield
        except ConfigError as error:
            told = str(error)
            whose = "" if repr(name) in told else f"server {name!r}: "
            self._notes.append(_note(f"{self._where}: {whose}{told}"))
            self.unusable.append(name)


def _note(detail: str) -> Diagnostic:
    return Diagnostic(stage="catalog", code="config_warning", detail=detail)


def _server(name: str, entry: object, notes: list[Diagnostic]) -> StdioServer | HttpServer | None:
    if not isinstance(entry, dict):
        raise ConfigError(f"server {name!r} must be an object")
    if entry.get("disabled") is True:
        return None
    kind = _kind(name, entry)
    known = _OWN_KEYS | (_STDIO_KEYS if kind == "stdio" else _HTTP_KEYS)
    notes.extend(
        _note(f"server {name!r}: unknown key {key!r} is ignored")
        for key in entry
        if key not in known
    )
    table = entry.get("env" if kind == "stdio" else "headers")
    notes.extend(
        _note(
            f"server {name!r}: {key!r} stands in the file as it is: "
            "write ${NAME}, env:NAME or keyring:SERVICE/NAME instead"
        )
        for part in (table, entry.get("auth") if kind == "http" else None)
        for key in literal_secrets(part if isinstance(part, dict) else {})
    )
    if kind == "stdio":
        return StdioServer(
            command=_text(name, entry, "command"),
            args=tuple(_expand(name, item) for item in _items(name, entry, "args")),
            env=_texts(name, entry, "env"),
            cwd=Path(_text(name, entry, "cwd")) if "cwd" in entry else None,
        )
    auth, headers = read_auth(name, entry, partial(_expand, name))
    headers = {**_texts(name, entry, "headers"), **headers}
    return HttpServer(url=_text(name, entry, "url"), headers=headers, auth=auth)


def _kind(name: str, entry: Mapping[str, object]) -> str:
    stated = entry.get("type")
    if stated is None:
        kind = "stdio" if "command" in entry else "http" if "url" in entry else None
    else:
        kind = _TYPES.get(str(stated))
    if kind is None:
        raise ConfigError(
            f"server {name!r} needs a 'command' (stdio) or a 'url' (streamable HTTP)"
            + (f"; type {stated!r} is not supported" if stated is not None else "")
        )
    return kind


def _text(name: str, entry: Mapping[str, object], key: str) -> str:
    value = entry.get(key)
    if not isinstance(value, str) or not value:
        raise ConfigError(f"server {name!r}: {key!r} must be a text that is not empty")
    return _expand(name, value)


def _items(name: str, entry: Mapping[str, object], key: str) -> list[str]:
    value = entry.get(key, [])
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ConfigError(f"server {name!r}: {key!r} must be a list of texts")
    return value


def _texts(name: str, entry: Mapping[str, object], key: str) -> dict[str, str]:
    value = entry.get(key, {})
    if not isinstance(value, dict) or not all(isinstance(item, str) for item in value.values()):
        raise ConfigError(f"server {name!r}: {key!r} must be an object of texts")
    return {inner: _expand(name, item) for inner, item in value.items()}


def _expand(name: str, text: str) -> str:
    if is_keyring(text):
        return from_keyring(text)
    text = as_variable(text)
    found = variables(frozenset(match.group(1) for match in _VARIABLE.finditer(text)))

    def value(match: re.Match[str]) -> str:
        variable, default = match.group(1), match.group(2)
        if found.get(variable):
            return found[variable]
        if default is None:
            raise ConfigError(
                f"server {name!r} needs the environment variable {variable}: set it, "
                f"or write ${{{variable}:-default}}"
            )
        return default

    return _VARIABLE.sub(value, text)
