"""How a host signs in to an HTTP server by OAuth, as values; `oauth_client` acts on them.

Tokens are never part of a configuration: they live in a `TokenStore`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal, Protocol
from urllib.parse import urlsplit

from gateway.errors import ConfigError

TokenStoreKind = Literal["file", "keyring"]
"""What keeps tokens: a file that only its owner can read, or the system's keyring."""
_MAX_PORT = 65535


class TokenStore(Protocol):
    """Keeps what one sign-in gave, as a text. May block."""

    def read(self) -> str | None:
        """Return the text; None if there is none."""

    def write(self, text: str) -> None:
        """Keep *text* in place of what was there."""

    def forget(self) -> None:
        """Keep nothing. Twice is harmless."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorizationResponse:
    """What the authorization server made the person's browser bring back."""

    code: str
    state: str | None = None
    issuer: str | None = None


class SignIn(Protocol):
    """Asks a person to sign in."""

    @property
    def address(self) -> str:
        """Where the browser is sent back to: a loopback address."""

    async def show(self, url: str) -> None:
        """Bring the person to *url*."""

    async def wait(self) -> AuthorizationResponse:
        """Wait until the person has decided.

        Raises:
            UpstreamError: The answer was no.
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
    tokens: TokenStore | None = field(default=None, repr=False, compare=False)
    """Where they are; None has none, so every request is refused until a person signs in."""
    sign_in: SignIn | None = field(default=None, repr=False, compare=False)
    """How a person is asked to sign in; None asks no person."""

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

    @property
    def identity(self) -> tuple[str, ...]:
        """As whom and for what is asked; holds no secret."""
        return ("oauth", self.scope, self.client_id, self.client_metadata_url)

    def with_tokens(self, tokens: TokenStore) -> OAuth:
        """Return the same with *tokens*, if it has none."""
        return self if self.tokens is not None else replace(self, tokens=tokens)
