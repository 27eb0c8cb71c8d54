"""`mcp.json` -> servers. The de-facto format, read strictly where it matters.

* Top key ``mcpServers`` or, as VS Code has it, ``servers``.
* ``${VAR}``, ``env:VAR``, ``${env:VAR}`` and ``${VAR:-default}`` are taken from the environment,
  ``keyring:SERVICE/NAME`` from the keyring; what is not there and has no default makes that
  server unusable, not the file.
* A fault of one server leaves the others; an unknown key is a warning.
* Ours are ``tools``, ``resources`` and ``prompts`` of a server (what is shown of it), ``trusted``
  (whether the host stands in for what it says of its tools), its ``status``, ``enabled``, ``tags``
  and ``scopes`` (who may find it), and the tables ``virtualServers``, ``rules``, ``kinds``,
  ``normalizer`` and ``options``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BeforeValidator, ConfigDict, Field

from gateway.catalog.entries import KIND, parse_paths
from gateway.catalog.kinds import KINDS
from gateway.errors import ConfigError, InvalidRequestError
from gateway.manifests.json_edit import parse
from gateway.manifests.manifest import Manifest, NormalizerSettings
from gateway.manifests.secrets import expand, literal_secrets, read_secret
from gateway.mcp.naming import check_server_name
from gateway.mcp.servers import HttpServer, OAuth, StdioServer
from gateway.options import CustomKind
from gateway.runtime.json_models import StrictModel, Text, read_value
from gateway.sources.protocol import Transform
from gateway.sources.transforms import Describe, Filter, Prefix, Rename
from gateway.sources.virtual import Alias, VirtualServer
from gateway.types import Access, Diagnostic, Kind, Status

V = TypeVar("V")

_TOP_KEYS = frozenset(
    ("mcpServers", "servers", "virtualServers", "rules", "kinds", "normalizer", "options")
) | {"inputs", "$schema"}


def _as(key: str, kind: type) -> BeforeValidator:
    """Read the short form of an object: a value of *kind* stands for one that has it at *key*."""
    return BeforeValidator(lambda raw: {key: raw} if isinstance(raw, kind) else raw)


class _ResourceRules(StrictModel):
    allow: list[str] | None = None
    deny: list[str] = Field(default_factory=list)
    describe: dict[str, str] = Field(default_factory=dict)

    def transforms(self, kind: Kind) -> Iterator[Transform]:
        """Yield what they mean, in the order in which they apply."""
        if self.allow is not None or self.deny:
            allow = None if self.allow is None else tuple(self.allow)
            yield Filter(allow=allow, deny=tuple(self.deny), kind=kind)
        if self.describe:
            yield Describe(self.describe, kind=kind)


class _Rules(_ResourceRules):
    rename: dict[str, str] = Field(default_factory=dict)
    prefix: str | None = None

    def transforms(self, kind: Kind) -> Iterator[Transform]:
        yield from super().transforms(kind)
        if self.rename:
            yield Rename(self.rename, kind=kind)
        if self.prefix is not None:
            yield Prefix(self.prefix, kind=kind)


class _Access(StrictModel):
    status: Status | None = None
    enabled: bool | None = None
    tags: list[str] = Field(default_factory=list)
    scopes: list[str] = Field(default_factory=list)

    @property
    def access(self) -> Access:
        return Access(
            status=self.status,
            enabled=self.enabled,
            tags=tuple(self.tags),
            scopes=frozenset(self.scopes),
        )


class _Server(_Access):
    model_config = ConfigDict(extra="allow")
    """Other clients have keys of their own."""

    type: Any = None
    description: Any = None
    disabled: Any = None
    trusted: bool = False
    tools: Annotated[_Rules, _as("allow", list)] = _Rules()
    prompts: Annotated[_Rules, _as("allow", list)] = _Rules()
    resources: Annotated[_ResourceRules, _as("allow", list)] = _ResourceRules()

    @property
    def transforms(self) -> tuple[Transform, ...]:
        return (
            *self.tools.transforms("tool"),
            *self.resources.transforms("resource"),
            *self.prompts.transforms("prompt"),
        )


class _Stdio(_Server):
    command: Text
    args: list[str] = Field(default_factory=list)
    env: dict[str, str] = Field(default_factory=dict)
    cwd: Text | None = None

    def settings(self) -> Mapping[str, object]:
        return self.env

    def target(self) -> StdioServer:
        return StdioServer(
            command=expand(self.command),
            args=tuple(map(expand, self.args)),
            env=_expand_all(self.env),
            cwd=Path(expand(self.cwd)) if self.cwd is not None else None,
            written=self.env,
        )


class _Bearer(StrictModel):
    type: Literal["bearer"]
    token: Text


class _OAuth(StrictModel):
    type: Literal["oauth"]
    scope: Text | None = None
    client_id: Text | None = None
    client_secret: Text | None = None
    client_metadata_url: Text | None = None
    callback_port: int = 0
    store: Literal["file", "keyring"] = "file"

    def target(self) -> OAuth:
        values: dict[str, Any] = self.model_dump(exclude={"type"}, exclude_none=True)
        for key, value in values.items():
            values[key] = expand(value) if isinstance(value, str) else value
        return OAuth(**values)


class _Http(_Server):
    url: Text
    headers: dict[str, str] = Field(default_factory=dict)
    auth: Annotated[_Bearer | _OAuth, Field(discriminator="type")] | None = None

    def settings(self) -> Mapping[str, object]:
        return {**self.headers, **dict(self.auth or ())}

    def target(self) -> HttpServer:
        headers = _expand_all(self.headers)
        if isinstance(self.auth, _Bearer):
            headers["Authorization"] = f"Bearer {expand(self.auth.token)}"
        auth = self.auth.target() if isinstance(self.auth, _OAuth) else None
        return HttpServer(url=expand(self.url), headers=headers, auth=auth)


_TYPES: Mapping[str, type[_Stdio | _Http]] = {
    "stdio": _Stdio,
    "http": _Http,
    "streamable-http": _Http,
    "streamableHttp": _Http,
}


class _Alias(StrictModel):
    tool: str = ""
    description: str = ""
    pin: str = ""


_Aliases = dict[str, Annotated[_Alias, _as("tool", str)]]


class _VirtualServer(_Access):
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
    """Return what an ``mcp.json`` says.

    Raises:
        ConfigError: The file is missing, is not JSON, or holds no table of servers.
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
    document = parse(text, where=str(path))
    return replace(parse_manifest(document, where=path.name), origin=str(path.resolve()))


def parse_manifest(document: object, *, where: str = "mcp.json") -> Manifest:
    """Return what the parsed JSON of an ``mcp.json`` says.

    Raises:
        ConfigError: It holds no table of servers.
    """
    table = None
    if isinstance(document, dict):
        table = document.get("mcpServers", document.get("servers"))
    if not isinstance(document, dict) or not isinstance(table, dict):
        raise ConfigError(f"{where!r} needs an object 'mcpServers' (or 'servers') at its top")
    virtual = document.get("virtualServers", {})
    if not isinstance(virtual, dict):
        raise ConfigError(f"{where!r}: 'virtualServers' must be an object")
    reader = _Reader(where)
    reader.warn(f"{where}: unknown key {key!r}" for key in document if key not in _TOP_KEYS)
    reader.read_each(table, reader.read_server)
    reader.read_each(virtual, reader.read_virtual_server)
    normalizer = reader.read_normalizer(document.get("normalizer"))
    return Manifest(
        kinds=_read_kinds(document.get("kinds", {})),
        access=reader.access,
        rules=_read_rules(document.get("rules", {})),
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
    """What was read until now. A fault of one entry is a note."""

    def __init__(self, where: str) -> None:
        self._where = where
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

    def read_server(self, name: str, entry: object) -> None:
        check_server_name(name)
        where = f"server {name!r}"
        if isinstance(entry, dict) and entry.get("disabled") is True:
            return
        server: _Stdio | _Http = read_value(_model_of(where, entry), entry, where=where)
        self.warn(f"{where}: unknown key {key!r} is ignored" for key in server.model_extra or ())
        self.warn(
            f"{where}: {key!r} stands in the file as it is: "
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
            self.warn([f"{self._where}: queries stay as they are: {error}"])
            return None

    def read_virtual_server(self, name: str, entry: object) -> None:
        where = f"virtual server {name!r}"
        if name in self.servers:
            raise ConfigError(f"{where} has the name of a server: rename it")
        table: _VirtualServer = read_value(_VirtualServer, entry, where=where)
        if table.disabled is True:
            return
        if not (table.tools or table.resources or table.prompts):
            raise ConfigError(f"{where} needs 'tools': an object of names and server/tool")
        self.access[name] = table.access
        self.virtual[name] = VirtualServer(
            name=name,
            tools=_read_aliases(table.tools),
            description=table.description,
            resources=_read_aliases(table.resources),
            prompts=_read_aliases(table.prompts),
        )


def _model_of(where: str, entry: object) -> type[_Stdio | _Http]:
    """Return the model of a server's entry, by its type or else by its keys."""
    if not isinstance(entry, dict):
        return _Stdio
    stated = entry.get("type")
    model = _TYPES.get(str(stated))
    if stated is None:
        model = _Stdio if "command" in entry else _Http if "url" in entry else None
    if model is None:
        raise ConfigError(
            f"{where} needs a 'command' (stdio) or a 'url' (streamable HTTP)"
            + (f"; type {stated!r} is not supported" if stated is not None else "")
        )
    return model


def _read_aliases(table: Mapping[str, _Alias]) -> dict[str, Alias]:
    return {
        name: Alias(of=alias.tool, description=alias.description, pin=alias.pin)
        for name, alias in table.items()
    }


def _read_kinds(raw: object) -> Mapping[str, CustomKind]:
    """Read ``{"dataset": {"searchable": ["topic", "owner.team"], "maxEntries": 500}}``."""
    kinds: Mapping[str, _Kind] = read_value(dict[str, _Kind], raw, where="'kinds'")
    for name, kind in kinds.items():
        if not re.fullmatch(KIND, name) or name in KINDS:
            raise ConfigError(
                f"kind {name!r} cannot be declared: take small letters, digits, '_' or '-', and "
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
    """Read ``{"*/delete_*": {"scopes": ["admin"]}}``; a fault costs the file, never a rule."""
    rules: Mapping[str, _Access] = read_value(dict[str, _Access], raw, where="'rules'")
    return {pattern: rule.access for pattern, rule in rules.items()}


def _expand_all(texts: Mapping[str, str]) -> dict[str, str]:
    return {name: expand(text) for name, text in texts.items()}
