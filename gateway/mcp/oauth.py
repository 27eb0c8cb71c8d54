"""How a host signs in to an HTTP server by OAuth, as values; what is done with them is `signing`.

Tokens are never part of a configuration: they live where `Tokens` keeps them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal, Protocol
from urllib.parse import urlsplit

from gateway.errors import ConfigError

Where = Literal["file", "keyring"]
"""What keeps tokens: a file that only its owner can read, or the system's keyring."""


class Tokens(Protocol):
    """Keeps what one sign-in gave, as a text. May block."""

    def read(self) -> str | None:
        """Give what was kept; None if there is nothing."""

    def write(self, text: str) -> None:
        """Keep *text* in place of what was there."""

    def forget(self) -> None:
        """Keep nothing. Twice is harmless."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the authorization server told the person's browser to bring back."""

    code: str
    state: str | None = None
    issuer: str | None = None


class Consent(Protocol):
    """Asks a person to sign in."""

    @property
    def address(self) -> str:
        """Where the browser is sent back to: a loopback address."""

    async def show(self, url: str) -> None:
        """Bring the person to *url*."""

    async def answer(self) -> Answer:
        """Wait until the person has decided.

        Raises:
            UpstreamError: The answer was no.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuth:
    """OAuth 2.1 with PKCE, as MCP has it: the server says who gives tokens for it."""

    scope: str = ""
    """What is asked for, separated by blanks; empty asks for what the server names."""
    client_id: str = ""
    """Of a client that was registered by hand; empty registers one (RFC 7591)."""
    client_secret: str = field(default="", repr=False)
    client_metadata_url: str = ""
    """An https address that describes the client and is its id, where the server takes that."""
    callback_port: int = 0
    """Where the browser comes back to on this machine; 0 takes a free one."""
    store: Where = "file"
    """What keeps the tokens."""
    tokens: Tokens | None = field(default=None, repr=False, compare=False)
    """Where they are; None has none, so every request is refused until somebody signs in."""
    consent: Consent | None = field(default=None, repr=False, compare=False)
    """Who is asked to sign in; None asks nobody."""

    def __post_init__(self) -> None:
        """Check what no server would take."""
        named = urlsplit(self.client_metadata_url)
        if self.client_metadata_url and (named.scheme != "https" or len(named.path) < 2):
            raise ConfigError("OAuth: client_metadata_url must be an https address with a path")
        if self.client_secret and not self.client_id:
            raise ConfigError("OAuth: client_secret goes with a client_id")
        if not 0 <= self.callback_port <= 65535:
            raise ConfigError("OAuth: callback_port must be between 0 and 65535")
        if self.store not in {"file", "keyring"}:
            raise ConfigError(f"OAuth: store must be file or keyring, got {self.store!r}")

    @property
    def identity(self) -> tuple[str, ...]:
        """As whom and for what is asked; holds no secret."""
        return ("oauth", self.scope, self.client_id, self.client_metadata_url)

    def kept_in(self, tokens: Tokens) -> OAuth:
        """Give the same with *tokens*, if it has none."""
        return self if self.tokens is not None else replace(self, tokens=tokens)
