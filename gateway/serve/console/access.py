"""Sessions of the console: a cookie for each sign-in, and a CSRF token in every form.

A browser signs in at an identity provider (`gateway.serve.account`) or with a token of the API. If
the API needs no token, `gateway serve` prints a launch token. A session ends when its token expires
or the accepted tokens change.

Only tokens of identity providers are stored, because upstream servers may need them. The CSRF token
is OWASP's synchronizer token pattern.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from dataclasses import dataclass, field, replace

from starlette.requests import Request
from starlette.responses import Response

from gateway.runtime.cache import Cache
from gateway.serve.api.problems import RefusedError
from gateway.serve.auth import BearerToken, bearer_secret
from gateway.serve.authenticator import Authenticator
from gateway.serve.http_options import HttpOptions
from gateway.types import Caller

SESSION_S = 12 * 3600
MAX_SESSIONS = 200
"""Maximum number of sessions of one user or token. Another session ends the oldest."""
MAX_PARTIES = 10_000
"""Maximum number of users and tokens with sessions. Another one ends all sessions of the oldest."""
_SAFE = ("GET", "HEAD")
FORM_FIELD = "csrf"
"""Hidden form field with the CSRF token."""


@dataclass(slots=True, kw_only=True)
class ConsoleSession:
    """Session of a browser that signed in."""

    bearer: BearerToken
    change: int = 0
    """`Authenticator.changes` at sign-in. The session ends when that counter increases."""
    key: str = field(init=False, repr=False)
    """Value of the session cookie: `party` and a secret."""
    csrf: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    notes: list[str] = field(default_factory=list)
    """Messages that the next page shows once."""

    @property
    def caller(self) -> Caller:
        """Caller that signed in."""
        return self.bearer.caller

    def __post_init__(self) -> None:
        digest = hashlib.sha256(f"{self.bearer.issuer} {self.bearer.name}".encode())
        self.key = f"{digest.hexdigest()}.{secrets.token_urlsafe(32)}"

    @property
    def party(self) -> str:
        """Digest of the user or token that signed in, common to its sessions."""
        return _party_of(self.key)

    def take_notes(self) -> tuple[str, ...]:
        """Remove and return the messages for the next page."""
        notes = tuple(self.notes)
        self.notes.clear()
        return notes


class Sessions:
    """Sessions of one console. A session never outlasts its token.

    Args:
        http: Address of the server, and its accepted tokens. Without tokens, the console accepts
            `launch_token`.
        authenticator: Checks tokens. None creates one from *http*.
    """

    def __init__(self, http: HttpOptions, authenticator: Authenticator | None = None) -> None:
        self.launch_token = "" if http.needs_token else secrets.token_urlsafe(32)
        """Sign-in token of this process. Empty if the API requires tokens."""
        if self.launch_token:
            authenticator = Authenticator(replace(http, token=self.launch_token))
        self.authenticator = authenticator or Authenticator(http)
        self._sessions_by_party = Cache[Cache[ConsoleSession]]("console", max_items=MAX_PARTIES)

    async def begin(self, token: str) -> ConsoleSession:
        """Authenticate *token* and return a new session.

        Raises:
            RefusedError: If `Authenticator.authenticate` rejects the token.
        """
        change = self.authenticator.changes
        bearer = await self.authenticator.authenticate([f"Bearer {token.strip()}"])
        return self.admit(bearer, change)

    def admit(self, bearer: BearerToken, change: int) -> ConsoleSession:
        """Return a new session. *change* is `Authenticator.changes` before *bearer* was checked."""
        session = ConsoleSession(bearer=bearer, change=change)
        sessions = self._sessions_by_party.peek(session.party)
        if sessions is None:
            sessions = Cache[ConsoleSession]("console", max_items=MAX_SESSIONS, ttl_s=SESSION_S)
            self._sessions_by_party.put(session.party, sessions)
        sessions.put(session.key, session)
        return session

    async def find(self, request: Request) -> ConsoleSession | None:
        """Return the session of *request*. None if it is missing, unknown or has ended.

        A request with a bearer token is a session of its own.

        Raises:
            RefusedError: If `Authenticator.authenticate` rejects the bearer token.
        """
        headers = request.headers.getlist("authorization")
        if request.method in _SAFE and any(map(bearer_secret, headers)):
            return ConsoleSession(bearer=await self.authenticator.authenticate(headers))
        return self.find_browser_session(request)

    def find_browser_session(self, request: Request) -> ConsoleSession | None:
        """Return the session of the request's cookie. None if it is unknown or has ended."""
        return self.find_by_cookie(request.cookies.get(self._cookie_name(request), ""))

    def find_by_cookie(self, value: str) -> ConsoleSession | None:
        """Return the session with the cookie *value*. None if it is unknown or has ended."""
        sessions = self._sessions_by_party.peek(_party_of(value))
        session = sessions.peek(value) if sessions else None
        if session is None or session.change != self.authenticator.changes:
            return None
        return session if time.time() < session.bearer.expires_at else None

    def set_cookie(self, response: Response, request: Request, session: ConsoleSession) -> None:
        """Set the session's cookie in *response*, the response to *request*."""
        response.set_cookie(
            self._cookie_name(request),
            session.key,
            max_age=SESSION_S,
            secure=self.is_secure(request),
            httponly=True,
            samesite="strict",
        )

    def _cookie_name(self, request: Request) -> str:
        # Cookies ignore the port, so two gateways on one machine need different names.
        name = f"gateway_console_{(request.scope.get('server') or ('', 0))[1]}"
        # Subdomains cannot set cookies with this prefix.
        return f"__Host-{name}" if self.is_secure(request) else name

    def is_secure(self, request: Request) -> bool:
        """Return whether browsers use HTTPS, even if a proxy forwards *request* without TLS."""
        addresses = (address.redirect_uri for address in self.authenticator.sign_ins.values())
        return any(address.startswith("https:") for address in (str(request.url), *addresses))

    def end(self, session: ConsoleSession) -> None:
        """Sign the browser out."""
        if sessions := self._sessions_by_party.peek(session.party):
            sessions.drop(session.key)


def _party_of(key: str) -> str:
    return key.partition(".")[0]


def check_form(session: ConsoleSession, sent: str) -> None:
    """Check the CSRF token *sent* with a form.

    Raises:
        RefusedError: 403 if the token does not belong to *session*.
    """
    if not secrets.compare_digest(session.csrf.encode(), sent.encode("utf-8", "replace")):
        raise RefusedError(
            403, "foreign_form", "this form belongs to another session; load the page again"
        )
