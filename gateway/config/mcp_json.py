"""Parser of ``mcp.json``, the configuration format that most MCP clients share.

* The table of servers is ``mcpServers`` or, as in VS Code, ``servers``.
* ``${VAR}``, ``env:VAR``, ``${env:VAR}`` and ``${VAR:-default}`` refer to the environment,
  ``keyring:SERVICE/NAME`` to the keyring. Without a value or default, the server is unusable.
* An invalid server does not affect the others. An unknown key is a warning.
* The gateway's own keys of a server are ``tools``, ``resources`` and ``prompts`` (the ones to
  show), ``trusted`` (by the host), ``status``, ``enabled``, ``tags`` and ``scopes``. Its own tables
  are ``virtualServers``, ``rules``, ``policies``, ``kinds``, ``normalizer``, ``plugins`` and
  ``options``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import Field

from gateway.catalog.entries import KIND, parse_paths
from gateway.catalog.kinds import KINDS
from gateway.config.config_file import read_text
from gateway.config.json_edit import parse
from gateway.config.manifest import Manifest, NormalizerSettings
from gateway.config.server_entries import (
    AccessEntry,
    HttpEntry,
    Rule,
    StdioEntry,
    model_of,
    short_form,
)
from gateway.errors import ConfigError, InvalidRequestError
from gateway.mcp.servers import HttpServer, StdioServer
from gateway.options import AccessPolicy, CustomKind, Options
from gateway.options.validation import option_types, read_option
from gateway.runtime.json_models import StrictModel, Text, read_value
from gateway.runtime.naming import to_server_name
from gateway.runtime.secrets import expand, literal_secrets, read_secret, with_editor_values
from gateway.sources.protocol import Transform
from gateway.sources.virtual import Alias, VirtualServer
from gateway.types import Access, Diagnostic

V = TypeVar("V")

_TOP_KEYS = (
    frozenset(
        ("mcpServers", "servers", "virtualServers", "rules", "policies", "kinds", "normalizer")
    )
    | {"options", "plugins"}
    | {"inputs", "$schema"}
)


class _Alias(StrictModel):
    tool: str = ""
    description: str = ""
    pin: str = ""


_Aliases = dict[str, Annotated[_Alias, short_form("tool", str)]]


class _VirtualServer(AccessEntry):
    description: str = ""
    disabled: Any = None
    tools: _Aliases = Field(default_factory=dict)
    resources: _Aliases = Field(default_factory=dict)
    prompts: _Aliases = Field(default_factory=dict)


class _Kind(StrictModel):
    searchable: list[str] = Field(default_factory=list)
    maxEntries: int = CustomKind().max_entries  # noqa: N815  (the name in the file)


class _Normalizer(StrictModel):
    model: Text
    baseUrl: str = ""  # noqa: N815  (the name in the file)
    apiKey: str = "${GATEWAY_NORMALIZE_API_KEY}"  # noqa: N815  (likewise)


def read_manifest(path: Path) -> Manifest:
    """Read an ``mcp.json``.

    Raises:
        ConfigError: If the file is missing, is not JSON, or has no table of servers.
    """
    missing = (
        f"no configuration at {str(path)!r}: write one with a table 'mcpServers', "
        "or name another file"
    )
    document = parse(read_text(path, missing=missing), where=str(path))
    folder = path.resolve().parent
    folder = folder.parent if folder.name in {".vscode", ".cursor"} else folder
    manifest = parse_manifest(document, where=path.name, folder=folder)
    return replace(manifest, origin=str(path.resolve()))


def parse_manifest(
    document: object, *, where: str = "mcp.json", folder: Path | None = None
) -> Manifest:
    """Read the parsed JSON of an ``mcp.json``.

    Args:
        document: Parsed JSON.
        where: Name of the file in errors and warnings.
        folder: Value of ``${workspaceFolder}``; None is the current folder.

    Raises:
        ConfigError: If there is no table of servers, or another table is invalid.
    """
    table = None
    if isinstance(document, dict):
        table = document.get("mcpServers", document.get("servers"))
    if not isinstance(document, dict) or not isinstance(table, dict):
        raise ConfigError(f"{where!r} needs an object 'mcpServers' (or 'servers') at its top")
    virtual = document.get("virtualServers", {})
    if not isinstance(virtual, dict):
        raise ConfigError(f"{where!r}: 'virtualServers' must be an object")
    reader = _Reader(where, folder or Path.cwd())
    reader.warn(f"{where}: unknown key {key!r}" for key in document if key not in _TOP_KEYS)
    reader.read_each(reader.by_own_name(table), reader.read_server)
    reader.read_each(virtual, reader.read_virtual_server)
    normalizer = reader.read_normalizer(document.get("normalizer"))
    return Manifest(
        plugins=_read_plugins(document.get("plugins")),
        kinds=_read_kinds(document.get("kinds", {})),
        access=reader.access,
        rules=_read_rules(document.get("rules", {})),
        policies=tuple(_read_policies(document.get("policies", []))),
        servers=reader.servers,
        warnings=tuple(reader.notes),
        unusable=tuple(reader.unusable),
        trusted=frozenset(reader.trusted),
        transforms=reader.transforms,
        virtual=reader.virtual,
        normalizer=normalizer,
        options=document.get("options", {}),
    )


class _Reader:
    """Reader of a file's servers, whose faults become warnings."""

    def __init__(self, where: str, folder: Path) -> None:
        self._where = where
        self._folder = folder
        self.notes: list[Diagnostic] = []
        self.servers: dict[str, StdioServer | HttpServer] = {}
        self.transforms: dict[str, tuple[Transform, ...]] = {}
        self.virtual: dict[str, VirtualServer] = {}
        self.access: dict[str, Access] = {}
        self.unusable: list[str] = []
        self.trusted: list[str] = []

    def warn(self, details: Iterable[str]) -> None:
        self.notes += (
            Diagnostic(stage="catalog", code="config_warning", detail=detail) for detail in details
        )

    def read_each(self, table: Mapping[str, object], read: Callable[[str, object], None]) -> None:
        for name, entry in table.items():
            try:
                read(name, entry)
            except ConfigError as error:
                prefix = "" if repr(name) in str(error) else f"server {name!r}: "
                self.warn([f"{self._where}: {prefix}{error}"])
                self.unusable.append(name)

    def by_own_name(self, table: Mapping[str, object]) -> dict[str, object]:
        """Return *table* keyed by valid server names, converted from those of other clients."""
        entries: dict[str, object] = {}
        for name, entry in table.items():
            server_name = to_server_name(name)
            if server_name in entries or server_name in table.keys() - {name}:
                fault = f"becomes {server_name!r}, the name of another server: rename it"
                self.warn([f"{self._where}: server {name!r} {fault}"])
                self.unusable.append(name)
                continue
            self.warn(
                [f"server {name!r} is called {server_name!r} here"] if server_name != name else ()
            )
            entries[server_name] = entry
        return entries

    def read_server(self, name: str, entry: object) -> None:
        where = f"server {name!r}"
        if isinstance(entry, dict) and entry.get("disabled") is True:
            return
        entry = with_editor_values(entry, self._folder)
        server: StdioEntry | HttpEntry = read_value(model_of(where, entry), entry, where=where)
        self.warn(f"{where}: unknown key {key!r} is ignored" for key in server.model_extra or ())
        self.warn(
            f"{where}: {key!r} is in the file as plain text: "
            "write ${NAME}, env:NAME or keyring:SERVICE/NAME instead"
            for key in literal_secrets(server.settings())
        )
        target, transforms = server.target(), server.transforms
        self.servers[name] = target
        self.access[name] = server.access
        if server.trusted:
            self.trusted.append(name)
        if transforms:
            self.transforms[name] = transforms

    def read_normalizer(self, entry: object) -> NormalizerSettings | None:
        where = "'normalizer'"
        if entry is None:
            return None
        try:
            table: _Normalizer = read_value(_Normalizer, entry, where=where)
            return NormalizerSettings(
                model=expand(table.model),
                base_url=expand(table.baseUrl),
                api_key=read_secret(table.apiKey, owner=f"{where}: 'apiKey'"),
            )
        except ConfigError as error:
            self.warn([f"{self._where}: the normalizer cannot be used: {error}"])
            return None

    def read_virtual_server(self, name: str, entry: object) -> None:
        where = f"virtual server {name!r}"
        if name in self.servers:
            raise ConfigError(f"{where} has the same name as a server: rename one of them")
        table: _VirtualServer = read_value(_VirtualServer, entry, where=where)
        if table.disabled is True:
            return
        if not (table.tools or table.resources or table.prompts):
            raise ConfigError(
                f"{where} needs 'tools', 'resources' or 'prompts': an object like "
                '{"new_name": "server/tool"}'
            )
        self.access[name] = table.access
        self.virtual[name] = VirtualServer(
            name=name,
            tools=_read_aliases(table.tools),
            description=table.description,
            resources=_read_aliases(table.resources),
            prompts=_read_aliases(table.prompts),
        )


def _read_aliases(table: Mapping[str, _Alias]) -> dict[str, Alias]:
    return {
        name: Alias(of=alias.tool, description=alias.description, pin=alias.pin)
        for name, alias in table.items()
    }


def _read_kinds(raw: object) -> Mapping[str, CustomKind]:
    """Read ``kinds``: ``{"dataset": {"searchable": ["owner.team"], "maxEntries": 500}}``."""
    kinds: Mapping[str, _Kind] = read_value(dict[str, _Kind], raw, where="'kinds'")
    for name, kind in kinds.items():
        if not re.fullmatch(KIND, name) or name in KINDS:
            raise ConfigError(
                f"kind {name!r} cannot be declared: use small letters, digits, '_' or '-', but "
                f"none of {', '.join(KINDS)}"
            )
        try:
            parse_paths(kind.searchable)
        except InvalidRequestError as error:
            raise ConfigError(f"kind {name!r}: {error}") from error
    return {
        name: CustomKind(searchable=tuple(kind.searchable), max_entries=kind.maxEntries)
        for name, kind in kinds.items()
    }


def _read_rules(raw: object) -> Mapping[str, Access]:
    """Read ``rules``, such as ``{"*/delete_*": {"scopes": ["admin"]}}``.

    A fault makes the whole file invalid, so that no rule is ignored.
    """
    rules: Mapping[str, Rule] = read_value(dict[str, Rule], raw, where="'rules'")
    return {pattern: rule.access for pattern, rule in rules.items()}


def _read_plugins(raw: object) -> tuple[str, ...] | None:
    """Read ``plugins``: names as in ``["local"]``, or ``"none"``.

    A fault makes the whole file invalid, because plugins may restrict calls.
    """
    try:
        names: tuple[str, ...] | None = read_option(
            [] if raw == "none" else raw, option_types(Options)["plugins"]
        )
    except ConfigError:
        raise ConfigError("'plugins' must be a list of names, or 'none'") from None
    return names


def _read_policies(raw: object) -> Iterator[AccessPolicy]:
    """Read ``policies``, such as ``[{"action": "deny", "tools": ["*/delete_*"]}]``.

    A fault makes the whole file invalid, so that no policy is ignored.
    """
    if not isinstance(raw, list):
        raise ConfigError("'policies' must be a list")
    types = option_types(AccessPolicy)
    for place, entry in enumerate(raw, 1):
        where = f"'policies': policy {place}"
        if not isinstance(entry, dict) or "action" not in entry:
            raise ConfigError(f"{where} must be an object with an 'action'")
        if unknown := sorted(entry.keys() - types.keys()):
            raise ConfigError(f"{where}: unknown key {unknown[0]!r}")
        try:
            values = {key: read_option(value, types[key]) for key, value in entry.items()}
            yield AccessPolicy(**values)
        except ConfigError as error:
            raise ConfigError(f"{where}: {error}") from None
