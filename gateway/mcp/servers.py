"""Targets of MCP servers: command or URL, and sign-in. The `repr` contains no secrets."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Protocol, TypeAlias
from urllib.parse import urlsplit

from gateway.errors import ConfigError
from gateway.types.caller import Secret

TokenStoreKind = Literal["file", "keyring"]
"""Kind of token store. ``keyring`` is the system's keyring. ``file`` is a file that only its owner
can read, or the gateway's store if this supports sign-ins and a host key is set."""
_MAX_PORT = 65535


class TokenStore(Protocol):
    """Store of one sign-in record, as a text. Methods may block."""

    @property
    def fault(self) -> str:
        """Reason why the last `read` could not read an existing text, with the remedy, or ""."""

    def read(self) -> str | None:
        """Return the stored text; None if missing or unreadable."""

    def write(self, text: str) -> None:
        """Store *text*."""

    def forget(self) -> None:
        """Delete the stored text. Repeated calls are harmless."""

    def lock(self) -> AbstractContextManager[None]:
        """Return a lock that excludes other processes, if the store supports locks.

        It may be acquired and released on different threads.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuth:
    """Settings of a sign-in by OAuth 2.1 with PKCE. The MCP server names its authorization server.

    Example:
        >>> HttpServer("https://mcp.example.org/mcp", auth=OAuth(per_user=True)).is_per_user
        True
    """

    scope: str = ""
    """Requested scopes, separated by spaces; empty requests the scopes that the server names."""
    client_id: str = ""
    """Id of an OAuth client that was registered by hand; empty registers a client (RFC 7591)."""
    client_secret: str = field(default="", repr=False)
    client_metadata_url: str = ""
    """An https URL of a document that describes the OAuth client; also the client's id. Only some
    authorization servers support it."""
    callback_port: int = 0
    """Port on this machine to which the browser returns; 0 chooses a free one."""
    store: TokenStoreKind = "file"
    per_user: bool = False
    """True if each user signs in. The gateway's own sign-in is then used only for listings."""
    user_tokens: Callable[[str], TokenStore] | None = field(default=None, repr=False, compare=False)
    """Returns the token store for a user's key (see `user_key`)."""
    tokens: TokenStore | None = field(default=None, repr=False, compare=False)
    """Token store. With None, the server refuses every request until a person signs in."""

    def __post_init__(self) -> None:
        metadata = urlsplit(self.client_metadata_url)
        if self.client_metadata_url and (metadata.scheme != "https" or len(metadata.path) < 2):
            raise ConfigError("OAuth: client_metadata_url must be an https address with a path")
        if self.client_secret and not self.client_id:
            raise ConfigError("OAuth: client_secret goes with a client_id")
        if not 0 <= self.callback_port <= _MAX_PORT:
            raise ConfigError("OAuth: callback_port must be between 0 and 65535")
        if self.store not in {"file", "keyring"}:
            raise ConfigError(f"OAuth: store must be file or keyring, got {self.store!r}")

    def with_tokens(self, tokens: TokenStore) -> OAuth:
        """Return a copy with the store *tokens*, unless a store is set."""
        return self if self.tokens is not None else replace(self, tokens=tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenExchange:
    """Settings for exchanging each user's access token for a token of the server (RFC 8693)."""

    token_url: str = field(repr=False)
    audience: str = ""
    resource: str = ""
    scope: str = ""
    """Scope of the new token. *audience*, *resource* and *scope* are sent only if not empty."""
    client_id: str = ""
    client_secret: str = field(default="", repr=False)
    token: ExchangedToken | None = field(default=None, repr=False, compare=False)
    """Exchanged token of one user; with None, requests have only the configured headers."""


class ExchangedToken(Protocol):
    """Access token for a server, obtained in exchange for a user's own token."""

    subject: Secret
    """The user's own token, from the user's last request."""

    async def get(self, *, refused: str = "") -> str:
        """Return the token; request a new one if it has expired or the server *refused* it.

        Raises:
            UpstreamError: If the exchange fails.
        """


@dataclass(frozen=True, slots=True)
class StdioServer:
    """An MCP server that runs as a child process, reached by standard input and output.

    Example:
        >>> StdioServer("npx", ("-y", "server-memory"), env={"API_KEY": "secret"})
        StdioServer(command='npx', cwd=None)
    """

    command: str
    args: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Variables of the process, in addition to inherited ones such as PATH and HOME."""
    cwd: Path | None = None
    written: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    """Variables as written in the configuration file, with unresolved references to secrets; empty
    without a file."""

    def __post_init__(self) -> None:
        if not self.command.strip():
            raise ConfigError("StdioServer: command is empty; name the program to run")

    @property
    def launch(self) -> str:
        """SHA-256 (hex) of the program, arguments, folder and names of variables."""
        folder = "" if self.cwd is None else str(self.cwd)
        return _digest("stdio", self.command, self.args, folder, sorted(self.env))

    def approval_digest(self, key: bytes) -> str:
        """Return the digest (hex) of the command and its variables, for approvals.

        Variables that the file gives by reference are digested by their reference, so that the
        secret may change. Other values are digested with the secret *key*.
        """
        if not self.env:
            return self.launch
        values = json.dumps(sorted((self.written or self.env).items())).encode()
        return _digest(self.launch, hmac.digest(key, values, "sha256").hex())

    @property
    def fingerprint(self) -> str:
        """SHA-256 (hex) of the whole configuration. It does not reveal secrets."""
        return _digest(self.launch, _mask(self.env))


ApiOpener: TypeAlias = Callable[["HttpServer", Any, int], Awaitable[Any]]
"""Creates a server object of the mcp package from an HTTP API.

The arguments are the API, a client with all guards, and the maximum document size in bytes."""


@dataclass(frozen=True, slots=True)
class HttpServer:
    """An MCP server reached by streamable HTTP, or by the older HTTP with SSE.

    Example:
        >>> HttpServer("https://mcp.example.org/mcp?key=k", {"X-Key": "secret"}).origin
        'https://mcp.example.org'
    """

    url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    auth: OAuth | TokenExchange | None = None
    """Sign-in or token exchange; None if the server needs neither."""
    sse: bool = False
    """True if the server uses HTTP with SSE as in MCP 2024-11-05."""
    openapi: str = field(default="", repr=False)
    """URL or file of the OpenAPI document, if the target is an HTTP API; else empty.

    For an API, ``url`` is the API's base URL or the document's URL. In the second case, the
    document names a base URL on the same host."""
    opener: ApiOpener | None = field(default=None, compare=False, repr=False)
    """Creates a server object from the HTTP API; comes from a plugin."""

    def __post_init__(self) -> None:
        try:
            parts = urlsplit(str(self.url))
            is_possible = parts.port != 0 and parts.scheme in {"http", "https"} and parts.hostname
        except ValueError:
            is_possible = False
        if not is_possible:
            raise ConfigError("HttpServer: url must look like http://host:port/path")

    @property
    def launch(self) -> str:
        """SHA-256 (hex) of the URL, the names of the headers, and the sign-in settings."""
        kind = ("openapi", self.openapi) if self.openapi else ("sse" if self.sse else "http",)
        return _digest(*kind, self.url, sorted(self.headers), *_auth_parts(self.auth))

    @property
    def is_per_user(self) -> bool:
        """True if calls use the credentials of each user."""
        auth = self.auth
        return isinstance(auth, TokenExchange) or (isinstance(auth, OAuth) and auth.per_user)

    def approval_digest(self, key: bytes) -> str:  # noqa: ARG002  (as `StdioServer` has it)
        """Return the digest (hex) for approvals. *key* has no effect."""
        return self.launch

    @property
    def fingerprint(self) -> str:
        """SHA-256 (hex) of the whole configuration. It does not reveal secrets."""
        return _digest(self.launch, _mask(self.headers))

    @property
    def origin(self) -> str:
        """Scheme, host and port of the URL, without secrets."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def _auth_parts(auth: OAuth | TokenExchange | None) -> tuple[str, ...]:
    if isinstance(auth, TokenExchange):
        parts = (auth.token_url, auth.audience, auth.resource, auth.scope, auth.client_id)
        return ("exchange", *parts)
    if auth is None:
        return ()
    user = ("user",) if auth.per_user else ()
    return ("oauth", auth.scope, auth.client_id, auth.client_metadata_url, *user)


def _digest(*parts: object) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _mask(values: Mapping[str, str]) -> list[tuple[str, str]]:
    # Eight digits distinguish two values, but are too few to find a secret by trial.
    return sorted((name, _digest(value)[:8]) for name, value in values.items())


def api_server(document: str, url: str, headers: Mapping[str, str]) -> HttpServer:
    """Return an HTTP API as a server.

    Args:
        document: URL or file of the OpenAPI document.
        url: Base URL of the API; if empty, the document names one on its own host.
        headers: Headers for the API. The request for the document does not have them.

    Raises:
        ConfigError: If the document is a file and *url* is empty, or a URL is invalid.
    """
    if not url and "://" not in document:
        raise ConfigError("the OpenAPI document is a file: give the base URL of the API as 'url'")
    return HttpServer(url or document, headers, openapi=document)


def server_target(name: str, server: object | None, arguments: Mapping[str, object]) -> object:
    """Return the target (command, URL or server object) in *arguments* of `Gateway.add_server`.

    Raises:
        ConfigError: If not exactly one target is given, or an argument has the wrong type.
    """
    values: dict[str, Any] = {key: value for key, value in arguments.items() if value is not None}
    for key, value in values.items():
        if fault := _find_fault(key, value):
            raise ConfigError(f"server {name!r}: {fault}")
    if len(values.keys() & {"command", "url"}) + (server is not None) != 1:
        raise ConfigError(f"server {name!r}: give exactly one of command=…, url=… and server=…")
    if "command" in values:
        cwd = Path(values["cwd"]) if "cwd" in values else None
        return StdioServer(values["command"], tuple(values["args"]), values.get("env", {}), cwd)
    return HttpServer(values["url"], values.get("headers", {})) if "url" in values else server


# By hand, because importing a validation library would slow down the start.
def _find_fault(key: str, value: object) -> str:
    expected, noun = _ARGUMENT_TYPES[key]
    if not isinstance(value, expected) or (key == "args" and isinstance(value, str | bytes)):
        return f"{key} must be {noun}"
    texts: list[tuple[str, object]] = []
    if isinstance(value, Mapping):
        texts = [(f"{key}.{name}", text) for name, item in value.items() for text in (name, item)]
    elif isinstance(value, Sequence) and key == "args":
        texts = [(f"{key}[{index}]", text) for index, text in enumerate(value)]
    return next((f"{name} must be a text" for name, text in texts if not isinstance(text, str)), "")


_ARGUMENT_TYPES: Mapping[str, tuple[type | UnionType, str]] = {
    "command": (str, "a text"),
    "args": (Sequence, "a list"),
    "env": (Mapping, "an object"),
    "cwd": (str | Path, "a path"),
    "url": (str, "a text"),
    "headers": (Mapping, "an object"),
}
