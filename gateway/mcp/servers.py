"""How an MCP server is reached and signed in to, as values. Their `repr` shows no secret.

Tokens are never part of a configuration: they live in a `TokenStore`.
"""

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
"""What keeps tokens: a file that only its owner can read, or the system's keyring."""
_MAX_PORT = 65535


class TokenStore(Protocol):
    """Keeps what one sign-in gave, as a text. May block."""

    @property
    def fault(self) -> str:
        """Why the last `read` returned none though there is one, and what mends it; or empty."""

    def read(self) -> str | None:
        """Return the text; None if there is none."""

    def write(self, text: str) -> None:
        """Keep *text* in place of what was there."""

    def forget(self) -> None:
        """Keep nothing. Twice is harmless."""

    def lock(self) -> AbstractContextManager[None]:
        """Hold off every other process for the block, where that can be.

        Entered and left on any thread.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuth:
    """OAuth 2.1 with PKCE, as MCP has it: the server names the authorization server."""

    scope: str = ""
    """What is asked for, separated by blanks; empty asks for what the server names."""
    client_id: str = ""
    """Of a client that was registered by hand; empty registers one (RFC 7591)."""
    client_secret: str = field(default="", repr=False)
    client_metadata_url: str = ""
    """An https address that describes the client and is its id, where the server takes that."""
    callback_port: int = 0
    """Where the browser comes back to on this machine; 0 takes a free one."""
    store: TokenStoreKind = "file"
    """What keeps the tokens."""
    per_user: bool = False
    """Whether each user signs in; the server's own sign-in, if there is one, then only lists."""
    user_tokens: Callable[[str], TokenStore] | None = field(default=None, repr=False, compare=False)
    """Opens where the tokens of one user are, by the key of the user."""
    tokens: TokenStore | None = field(default=None, repr=False, compare=False)
    """Where they are; None has none, so every request is refused until a person signs in."""

    def __post_init__(self) -> None:
        """Check what no server would take."""
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
        """Return the same with *tokens*, if it has none."""
        return self if self.tokens is not None else replace(self, tokens=tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenExchange:
    """Each user's access token is exchanged for one of the server (RFC 8693)."""

    token_url: str = field(repr=False)
    """The token endpoint."""
    audience: str = ""
    resource: str = ""
    scope: str = ""
    """What the new token is for, as the endpoint knows it; what is empty is not sent."""
    client_id: str = ""
    client_secret: str = field(default="", repr=False)
    """Of the gateway, at the endpoint."""
    token: ExchangedToken | None = field(default=None, repr=False, compare=False)
    """That of one user; None lists with the server's own headers alone."""


class ExchangedToken(Protocol):
    """The token that one user's own was exchanged for."""

    subject: Secret
    """The user's own token, as it came last."""

    async def get(self, *, refused: str = "") -> str:
        """Return it; a new one if it ran out or is the one that was *refused*.

        Raises:
            UpstreamError: There is none.
        """


@dataclass(frozen=True, slots=True)
class StdioServer:
    """A server that runs as a child process and speaks over its standard input and output."""

    command: str
    args: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Added to the few variables that a child inherits (PATH, HOME and their like)."""
    cwd: Path | None = None
    written: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    """The variables as their file has them, references unresolved; empty if there is no file."""

    def __post_init__(self) -> None:
        """Check what no operating system would run."""
        if not self.command.strip():
            raise ConfigError("StdioServer: command is empty; name the program to run")

    @property
    def launch(self) -> str:
        """SHA-256 (hex) of what would run: program, arguments, folder, names of variables."""
        folder = "" if self.cwd is None else str(self.cwd)
        return _digest("stdio", self.command, self.args, folder, sorted(self.env))

    def approval_digest(self, key: bytes) -> str:
        """Return the digest (hex) that is pinned: of what would run, and of each variable.

        Of a variable that its file gives by reference the reference counts, so that a secret may be
        another one later; of any other one the value, under *key*.
        """
        if not self.env:
            return self.launch
        values = json.dumps(sorted((self.written or self.env).items())).encode()
        return _digest(self.launch, hmac.digest(key, values, "sha256").hex())

    @property
    def fingerprint(self) -> str:
        """SHA-256 (hex) of the whole configuration; secrets cannot be found from it."""
        return _digest(self.launch, _mask(self.env))


ApiOpener: TypeAlias = Callable[["HttpServer", Any, int], Awaitable[Any]]
"""Makes a server object of the mcp package out of an API, a client with all guards, and the maximum
number of bytes of a document."""


@dataclass(frozen=True, slots=True)
class HttpServer:
    """A server that speaks streamable HTTP, or SSE as it was before that."""

    url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Sent with every request."""
    auth: OAuth | TokenExchange | None = None
    """How to sign in; None does not."""
    sse: bool = False
    """Whether it speaks the HTTP with SSE of MCP 2024-11-05."""
    openapi: str = field(default="", repr=False)
    """The address or file of an OpenAPI document, if it is an API that speaks no MCP: then ``url``
    is where the API is, or the document itself, which names a place at the same host."""
    opener: ApiOpener | None = field(default=None, compare=False, repr=False)
    """Opens such an API; the gateway takes it from a plugin."""

    def __post_init__(self) -> None:
        """Check that it names a host, and a port that can be one, by which HTTP is spoken."""
        try:
            parts = urlsplit(str(self.url))
            is_possible = parts.port != 0 and parts.scheme in {"http", "https"} and parts.hostname
        except ValueError:
            is_possible = False
        if not is_possible:
            raise ConfigError("HttpServer: url must look like http://host:port/path")

    @property
    def launch(self) -> str:
        """SHA-256 (hex) of what would be asked: address, names of headers, and identity."""
        kind = ("openapi", self.openapi) if self.openapi else ("sse" if self.sse else "http",)
        return _digest(*kind, self.url, sorted(self.headers), *_identity(self.auth))

    @property
    def is_per_user(self) -> bool:
        """Whether calls go with the credentials of the user."""
        auth = self.auth
        return isinstance(auth, TokenExchange) or (isinstance(auth, OAuth) and auth.per_user)

    def approval_digest(self, key: bytes) -> str:  # noqa: ARG002  (as `StdioServer` has it)
        """Return the digest (hex) that is pinned."""
        return self.launch

    @property
    def fingerprint(self) -> str:
        """SHA-256 (hex) of the whole configuration; secrets cannot be found from it."""
        return _digest(self.launch, _mask(self.headers))

    @property
    def origin(self) -> str:
        """Scheme, host and port: what may be shown of the address."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def _identity(auth: OAuth | TokenExchange | None) -> tuple[str, ...]:
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
    # Eight digits tell two values apart, and are too few to find one by trying.
    return sorted((name, _digest(value)[:8]) for name, value in values.items())


def api_server(document: str, url: str, headers: Mapping[str, str]) -> HttpServer:
    """Return an API as a server.

    Args:
        document: The address or file of its OpenAPI document.
        url: Where it is; empty is where the document says, at the host of the document.
        headers: Sent to the API alone.

    Raises:
        ConfigError: The document is a file and *url* is empty, or an address cannot be one.
    """
    if not url and "://" not in document:
        raise ConfigError("the OpenAPI document is a file: say where the API is as 'url'")
    return HttpServer(url or document, headers, openapi=document)


def server_target(name: str, server: object | None, arguments: Mapping[str, object]) -> object:
    """Return what a host named as one target: a child process, an address or a server object.

    Args:
        name: For messages.
        server: The object itself, if it is one.
        arguments: The others of `Gateway.add_server` that say how a server is reached.

    Raises:
        ConfigError: If it named not exactly one of the three, or something is of another type.
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


# A library of such checks takes longer to load than all else that a start needs.
def _find_fault(key: str, value: object) -> str:
    """Return what is wrong with the type of *value*; empty if nothing is."""
    expected, noun = _TYPES[key]
    if not isinstance(value, expected) or (key == "args" and isinstance(value, str | bytes)):
        return f"{key} must be {noun}"
    texts: list[tuple[str, object]] = []
    if isinstance(value, Mapping):
        texts = [(f"{key}.{name}", text) for name, item in value.items() for text in (name, item)]
    elif isinstance(value, Sequence) and key == "args":
        texts = [(f"{key}[{at}]", text) for at, text in enumerate(value)]
    return next((f"{name} must be a text" for name, text in texts if not isinstance(text, str)), "")


_TYPES: Mapping[str, tuple[type | UnionType, str]] = {
    "command": (str, "a text"),
    "args": (Sequence, "a list"),
    "env": (Mapping, "an object"),
    "cwd": (str | Path, "a path"),
    "url": (str, "a text"),
    "headers": (Mapping, "an object"),
}
