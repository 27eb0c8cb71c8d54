"""Access to the console: a cookie made from a token, and a secret in every form.

* A browser signs in once: at an identity provider (`gateway.serve.account`), with a token that the
  API accepts too, or, where the API needs none, with the launch token that `gateway serve` prints.
  Only a token of an identity provider is kept, since a server may want it in exchange. A session
  ends with its token, and when other tokens are accepted.
* The cookie is HttpOnly and SameSite=Strict: requests of other sites come without it. Every form
  holds a secret of its session besides (CSRF, OWASP's synchronizer token).
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
"""How long a session lasts."""
MAX_SESSIONS = 200
"""Of one party: with one more, its oldest ends, and none of another party."""
MAX_PARTIES = 10_000
"""With one more, the sessions of the party that signed in first end."""
_SAFE = ("GET", "HEAD")
FORM_FIELD = "csrf"
"""The hidden field of every form."""


@dataclass(slots=True, kw_only=True)
class ConsoleSession:
    """A browser that signed in."""

    bearer: BearerToken
    change: int = 0
    """Of `Authenticator.changes`: it ends with the next one."""
    key: str = field(init=False, repr=False)
    """The value of its cookie."""
    csrf: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    """The secret of its forms."""
    notes: list[str] = field(default_factory=list)
    """What the next page shows once."""

    @property
    def caller(self) -> Caller:
        """The caller that signed in."""
        return self.bearer.caller

    def __post_init__(self) -> None:
        """Make the key: the party, by which it is found, and a secret."""
        digest = hashlib.sha256(f"{self.bearer.issuer} {self.bearer.name}".encode())
        self.key = f"{digest.hexdigest()}.{secrets.token_urlsafe(32)}"

    @property
    def party(self) -> str:
        """What its sessions have in common."""
        return _party_of(self.key)

    def take_notes(self) -> tuple[str, ...]:
        """Return the notes and forget them."""
        notes = tuple(self.notes)
        self.notes.clear()
        return notes


class Sessions:
    """The sessions of one console. None outlasts the token that began it.

    Args:
        http: Where it is served, and which tokens it accepts. If there are none, it accepts
            `launch_token`.
        authenticator: Names the party of a token; None makes one of *http*.
    """

    def __init__(self, http: HttpOptions, authenticator: Authenticator | None = None) -> None:
        self.launch_token = "" if http.needs_token else secrets.token_urlsafe(32)
        """The token of this start; empty where the API needs a token of its own."""
        if self.launch_token:
            authenticator = Authenticator(replace(http, token=self.launch_token))
        self.authenticator = authenticator or Authenticator(http)
        self._of_party = Cache[Cache[ConsoleSession]]("console", max_items=MAX_PARTIES)

    async def begin(self, token: str) -> ConsoleSession:
        """Return a new session for the party that *token* names.

        Raises:
            RefusedError: As of `Authenticator.authenticate`.
        """
        change = self.authenticator.changes
        bearer = await self.authenticator.authenticate([f"Bearer {token.strip()}"])
        return self.admit(bearer, change)

    def admit(self, bearer: BearerToken, change: int) -> ConsoleSession:
        """Return a new session for *bearer*.

        Args:
            bearer: Was authenticated just now.
            change: `Authenticator.changes` from before that: another one has ended it already.
        """
        session = ConsoleSession(bearer=bearer, change=change)
        own = self._of_party.peek(session.party)
        if own is None:
            own = Cache[ConsoleSession]("console", max_items=MAX_SESSIONS, ttl_s=SESSION_S)
            self._of_party.put(session.party, own)
        own.put(session.key, session)
        return session

    async def find(self, request: Request) -> ConsoleSession | None:
        """Return the session of *request*; None without one.

        A program may read pages with a bearer token in place of a session.

        Raises:
            RefusedError: For a bearer token, as of `Authenticator.authenticate`.
        """
        headers = request.headers.getlist("authorization")
        if request.method in _SAFE and any(map(bearer_secret, headers)):
            return ConsoleSession(bearer=await self.authenticator.authenticate(headers))
        return self.of_browser(request)

    def of_browser(self, request: Request) -> ConsoleSession | None:
        """Return the session whose cookie *request* has; None without one."""
        return self.of_cookie(request.cookies.get(self._cookie_name(request), ""))

    def of_cookie(self, value: str) -> ConsoleSession | None:
        """Return the session whose cookie has *value*; None without one, or if it has ended."""
        own = self._of_party.peek(_party_of(value))
        found = own.peek(value) if own else None
        if found is None or found.change != self.authenticator.changes:
            return None
        return found if time.time() < found.bearer.expires_at else None

    def set_cookie(self, response: Response, request: Request, session: ConsoleSession) -> None:
        """Let *response*, the answer to *request*, set the cookie of *session*."""
        response.set_cookie(
            self._cookie_name(request),
            session.key,
            max_age=SESSION_S,
            secure=self.is_secure(request),
            httponly=True,
            samesite="strict",
        )

    def _cookie_name(self, request: Request) -> str:
        # Cookies know no port: two gateways of one machine must not share one.
        name = f"gateway_console_{(request.scope.get('server') or ('', 0))[1]}"
        # A browser takes one of this prefix from this host alone, and no site beside it.
        return f"__Host-{name}" if self.is_secure(request) else name

    def is_secure(self, request: Request) -> bool:
        """Return whether browsers come by TLS, also if *request* came by a proxy without."""
        addresses = (each.redirect_uri for each in self.authenticator.sign_ins.values())
        return any(each.startswith("https:") for each in (str(request.url), *addresses))

    def end(self, session: ConsoleSession) -> None:
        """End *session*."""
        if own := self._of_party.peek(session.party):
            own.drop(session.key)


def _party_of(key: str) -> str:
    return key.partition(".")[0]


def check_form(session: ConsoleSession, sent: str) -> None:
    """Refuse a form that was not made for *session*.

    Raises:
        RefusedError: 403.
    """
    if not secrets.compare_digest(session.csrf.encode(), sent.encode("utf-8", "replace")):
        raise RefusedError(403, "foreign_form", "this form is of another session: load it again")
