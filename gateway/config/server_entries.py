"""Models of a server's entry in `mcp.json`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field

from gateway.errors import ConfigError
from gateway.mcp.servers import HttpServer, OAuth, StdioServer, TokenExchange, api_server
from gateway.runtime.json_models import StrictModel, Text
from gateway.runtime.secrets import expand, read_env_file
from gateway.sources.protocol import Transform
from gateway.sources.transforms import Describe, Filter, Prefix, Rename
from gateway.types import Access, Kind, Status
from gateway.types.entities import MAX_SEARCH_TEXT_CHARS


def short_form(key: str, kind: type) -> BeforeValidator:
    """Return a validator that replaces a value of the short form *kind* by ``{key: value}``."""
    return BeforeValidator(lambda raw: {key: raw} if isinstance(raw, kind) else raw)


class _ResourceRules(StrictModel):
    allow: list[str] | None = None
    deny: list[str] = Field(default_factory=list)
    describe: dict[str, str] = Field(default_factory=dict)

    def transforms(self, kind: Kind) -> Iterator[Transform]:
        """Yield the transforms of these rules for entities of *kind*, in order."""
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


class AccessEntry(StrictModel):
    """Keys that set the access to a server or a virtual server."""

    status: Status | None = None
    enabled: bool | None = None
    tags: list[str] = Field(default_factory=list)
    scopes: list[str] = Field(default_factory=list)

    @property
    def access(self) -> Access:
        """The keys as an `Access`."""
        return Access(
            status=self.status,
            enabled=self.enabled,
            tags=tuple(self.tags),
            scopes=frozenset(self.scopes),
        )


class Rule(AccessEntry):
    """Access rule for a pattern of names, as in the table ``rules``."""

    search_text: Annotated[str, Field(max_length=MAX_SEARCH_TEXT_CHARS)] = ""
    examples: list[str] = Field(default_factory=list)

    @property
    def access(self) -> Access:
        """The rule as an `Access`."""
        access = replace(super().access, search_text=self.search_text)
        return replace(access, examples=tuple(self.examples))


class _Server(AccessEntry):
    model_config = ConfigDict(extra="allow")
    """Other clients have additional keys."""

    type: Any = None
    description: Any = None
    disabled: Any = None
    trusted: bool = False
    tools: Annotated[_Rules, short_form("allow", list)] = _Rules()
    prompts: Annotated[_Rules, short_form("allow", list)] = _Rules()
    resources: Annotated[_ResourceRules, short_form("allow", list)] = _ResourceRules()

    @property
    def transforms(self) -> tuple[Transform, ...]:
        return (
            *self.tools.transforms("tool"),
            *self.resources.transforms("resource"),
            *self.prompts.transforms("prompt"),
        )


class StdioEntry(_Server):
    """Entry of a server that is a program with standard input and output."""

    command: Text
    args: list[str] = Field(default_factory=list)
    env: dict[str, str] = Field(default_factory=dict)
    cwd: Text | None = None
    envFile: Text | None = None  # noqa: N815  (the name in the file)

    def settings(self) -> Mapping[str, object]:
        """Return the settings that may contain secrets, by name."""
        return self.env

    def target(self) -> StdioServer:
        """Return the server, with references resolved."""
        more = read_env_file(Path(expand(self.envFile))) if self.envFile is not None else {}
        return StdioServer(
            command=expand(self.command),
            args=tuple(map(expand, self.args)),
            env={**more, **_expand_all(self.env)},
            cwd=Path(expand(self.cwd)) if self.cwd is not None else None,
            # Values of an `envFile` are not references, so the approval digest contains them.
            written={**more, **self.env},
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
    per_user: bool = False

    def target(self) -> OAuth:
        """Return the OAuth settings, with references resolved."""
        return OAuth(**_expanded(self))


class _TokenExchange(StrictModel):
    type: Literal["token_exchange"]
    token_url: Text
    audience: Text | None = None
    resource: Text | None = None
    scope: Text | None = None
    client_id: Text | None = None
    client_secret: Text | None = None

    def target(self) -> TokenExchange:
        """Return the token exchange settings, with references resolved."""
        return TokenExchange(**_expanded(self))


def _expanded(model: StrictModel) -> dict[str, Any]:
    values: dict[str, Any] = model.model_dump(exclude={"type"}, exclude_none=True)
    return {
        key: expand(value) if isinstance(value, str) else value for key, value in values.items()
    }


class HttpEntry(_Server):
    """Entry of a server with a URL."""

    url: Text
    headers: dict[str, str] = Field(default_factory=dict)
    auth: Annotated[_Bearer | _OAuth | _TokenExchange, Field(discriminator="type")] | None = None

    def settings(self) -> Mapping[str, object]:
        """Return the settings that may contain secrets, by name."""
        return {**self.headers, **dict(self.auth or ())}

    def target(self) -> HttpServer:
        """Return the server, with references resolved."""
        headers = _expand_all(self.headers)
        if isinstance(self.auth, _Bearer):
            headers["Authorization"] = f"Bearer {expand(self.auth.token)}"
        auth = None if isinstance(self.auth, _Bearer | None) else self.auth.target()
        return HttpServer(url=expand(self.url), headers=headers, auth=auth)


class _OpenApi(HttpEntry):
    openapi: Text
    url: str = ""

    def target(self) -> HttpServer:
        headers, document = _expand_all(self.headers), expand(self.openapi)
        return api_server(document, expand(self.url), headers)


class _Sse(HttpEntry):
    def target(self) -> HttpServer:
        return replace(super().target(), sse=True)


_BY_KEY: Mapping[str, type[StdioEntry | HttpEntry]] = {
    "command": StdioEntry,
    "openapi": _OpenApi,
    "url": HttpEntry,
}
"""Models of entries without ``type``, by the first of these keys in the entry."""
_TYPES: Mapping[str, type[StdioEntry | HttpEntry]] = {
    "stdio": StdioEntry,
    "http": HttpEntry,
    "sse": _Sse,
    "streamable-http": HttpEntry,
    "streamableHttp": HttpEntry,
}


def model_of(where: str, entry: object) -> type[StdioEntry | HttpEntry]:
    """Return the model of an *entry*, by its ``type`` or other keys. Errors name *where*."""
    if not isinstance(entry, dict):
        return StdioEntry
    stated = entry.get("type")
    model = _TYPES.get(str(stated))
    if stated is None:
        model = next((model for key, model in _BY_KEY.items() if key in entry), None)
    if model is None:
        raise ConfigError(
            f"{where} needs a 'command' (stdio) or a 'url' (streamable HTTP)"
            + (f"; type {stated!r} is not supported" if stated is not None else "")
        )
    return model


def _expand_all(texts: Mapping[str, str]) -> dict[str, str]:
    return {name: expand(text) for name, text in texts.items()}
