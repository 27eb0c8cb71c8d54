"""Access to the console: a cookie made from a token, and a secret in every form.

* A browser signs in once with a token that the API accepts too, or, where the API needs none, with
  the launch token that `gateway serve` prints. The token itself is not kept.
* The cookie is HttpOnly and SameSite=Strict, so no other site's request bears it. Every form holds
  a secret of its session besides (CSRF, OWASP's synchronizer token).
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field

from starlette.requests import Request
from starlette.responses import Response

from gateway.runtime.cache import Cache
from gateway.serve.api.problems import RefusedError
from gateway.serve.auth import BearerToken, authenticate, bearer_secret
from gateway.serve.guard import CONSOLE
from gateway.serve.http_options import HttpOptions
from gateway.types import Caller

SESSION_S = 12 * 3600
"""How long a session lasts."""
MAX_SESSIONS = 200
"""Of one token: with one more, its oldest ends, and none of another token."""
_SAFE = ("GET", "HEAD")
FORM_FIELD = "csrf"
"""The hidden field of every form."""


@dataclass(slots=True, kw_only=True)
class ConsoleSession:
    """A browser that signed in."""

    caller: Caller
    key: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    """The value of its cookie."""
    csrf: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    """The secret of its forms."""
    notes: list[str] = field(default_factory=list)
    """What the next page shows once."""

    def take_notes(self) -> tuple[str, ...]:
        """Return the notes and forget them."""
        notes = tuple(self.notes)
        self.notes.clear()
        return notes


class Sessions:
    """The sessions of one console.

    Args:
        http: Where it is served, and the tokens that it accepts. Without any, `launch_token` does.
    """

    def __init__(self, http: HttpOptions) -> None:
        self.launch_token = "" if http.needs_token else secrets.token_urlsafe(32)
        """The token of this start; empty where the API needs a token of its own."""
        self._tokens = _accepted(http, self.launch_token)
        self._sessions = {
            each.digest: Cache[ConsoleSession]("console", max_items=MAX_SESSIONS, ttl_s=SESSION_S)
            for each in self._tokens
        }

    def begin(self, token: str) -> ConsoleSession:
        """Return a new session for the caller that *token* names.

        Raises:
            RefusedError: 401, for a token that is missing or unknown.
        """
        bearer = authenticate(self._tokens, f"Bearer {token.strip()}")
        session = ConsoleSession(caller=bearer.caller)
        self._sessions[bearer.digest].put(session.key, session)
        return session

    def find(self, request: Request) -> ConsoleSession | None:
        """Return the session of *request*; None without one.

        A program may read pages with a bearer token in place of a session.

        Raises:
            RefusedError: 401, for a bearer token that is not known.
        """
        bearer = bearer_secret(request.headers.get("authorization", ""))
        if bearer and request.method in _SAFE:
            return ConsoleSession(caller=authenticate(self._tokens, f"Bearer {bearer}").caller)
        return self.of_cookie(request.cookies.get(_cookie_name(request), ""))

    def of_cookie(self, value: str) -> ConsoleSession | None:
        """Return the session whose cookie has *value*; None without one."""
        found = (own.peek(value) for own in self._sessions.values())
        return next(filter(None, found), None)

    def end(self, session: ConsoleSession) -> None:
        """End *session*."""
        for own in self._sessions.values():
            own.drop(session.key)


def _accepted(http: HttpOptions, launch_token: str) -> Sequence[BearerToken]:
    """Return the tokens of *http*; one that needs no secret gets *launch_token* as its own."""
    tokens = http.accepted_tokens()
    if not launch_token:
        return tokens
    return [BearerToken.from_secret(each.name, launch_token, each.caller) for each in tokens]


def set_cookie(response: Response, request: Request, session: ConsoleSession) -> None:
    """Let *response* set the cookie of *session*."""
    response.set_cookie(
        _cookie_name(request),
        session.key,
        max_age=SESSION_S,
        path=CONSOLE,
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="strict",
    )


def _cookie_name(request: Request) -> str:
    # Cookies know no port: two gateways of one machine must not share one.
    return f"gateway_console_{(request.scope.get('server') or ('', 0))[1]}"


def check_form(session: ConsoleSession, sent: str) -> None:
    """Refuse a form that was not made for *session*.

    Raises:
        RefusedError: 403.
    """
    if not secrets.compare_digest(session.csrf.encode(), sent.encode("utf-8", "replace")):
        raise RefusedError(403, "foreign_form", "this form is of another session: load it again")
