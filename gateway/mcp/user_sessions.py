"""Sessions of a server that is called with the credentials of each user.

The server's shared session is used for listings, never for calls. All functions here run on one
event loop.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, replace
from typing import TypeVar

from gateway.errors import (
    InvalidRequestError,
    SignInRequiredError,
    StoreError,
    UpstreamError,
    UpstreamTimeoutError,
    UpstreamUnavailableError,
)
from gateway.mcp.servers import ExchangedToken, HttpServer, OAuth, TokenExchange, TokenStore
from gateway.mcp.supervisor import ServerSession, Supervisor
from gateway.mcp.traffic import Traffic
from gateway.options import UpstreamOptions
from gateway.runtime.cache import Clock
from gateway.runtime.retry import retry_if_safe
from gateway.types import Caller

T = TypeVar("T")
_UNAUTHORIZED = 401
_POLL_S = 0.5
"""Interval between checks for a finished sign-in, in seconds."""


def user_key(caller: Caller, *parts: str) -> str:
    """Return the key of a user's credentials, made from tenant, user name, and *parts*."""
    text = json.dumps([caller.tenant, caller.user, *parts])
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


@dataclass(frozen=True, slots=True, kw_only=True)
class UserSignIn:
    """Sign-in of one user to one server, with the stores of its state."""

    server: str
    target: HttpServer
    auth: OAuth
    options: UpstreamOptions
    tokens: TokenStore
    pending: TokenStore
    """Store of the user's unfinished sign-in."""
    callback: str
    """Redirect URL of the sign-in; empty if the gateway has no public URL."""


@dataclass(slots=True, eq=False)
class _UserSession:
    supervisor: Supervisor[ServerSession]
    token: ExchangedToken | None
    """Exchanged token of the user; None if the server uses OAuth."""
    sign_in: str
    """Id of the sign-in that the session uses; empty if it uses an exchanged token."""
    is_over: bool = False
    """True if the user has signed out or signed in again, so that the session must not be used."""
    uses: int = 0
    """Number of calls that run or are about to start."""


@dataclass(eq=False, repr=False)
class UserSessions:
    """The users' sessions of one server.

    At the maximum number of sessions, the least recently used idle session is closed.

    Args:
        target: Server. Its own authorization headers are not sent with calls of users.
        address: URL at which users sign in, or "".
    """

    server: str
    target: HttpServer
    connect: Callable[[HttpServer], Awaitable[ServerSession]]
    options: UpstreamOptions
    _: KW_ONLY
    clock: Clock
    address: str = ""

    def __post_init__(self) -> None:
        self._sessions: dict[tuple[str, str], _UserSession] = {}
        """Sessions, keyed by (user, sign-in). The most recently used session comes last."""
        self._closing = set[asyncio.Task[None]]()
        headers = {
            name: value
            for name, value in self.target.headers.items()
            if name.casefold() != "authorization"
        }
        self._target_without_credentials = replace(self.target, headers=headers)
        # They count against the maximum of sessions, so keep_alive does not apply.
        self._limits = replace(
            self.options,
            lifecycle="idle" if self.options.lifecycle == "keep_alive" else self.options.lifecycle,
        )

    async def use(
        self, caller: Caller, work: Callable[[ServerSession], Awaitable[T]], *, repeatable: bool
    ) -> T:
        """Run *work* with the session of *caller*, and return its result.

        Unless *repeatable*, *work* is repeated only if it had no effect.

        Raises:
            SignInRequiredError: If the user has no credentials for this server, or they are
                refused.
            UpstreamError: As for `Supervisor.use`, or if the caller's token cannot be exchanged.
        """
        try:
            return await self._use_session(caller, work, repeatable=repeatable)
        except SignInRequiredError as error:
            from gateway.mcp.server_requests import ask_to_sign_in  # noqa: PLC0415  (mcp is heavy: a warm start must not pay for it)

            limit_s = self.options.ask_timeout_s
            if not error.address or not await ask_to_sign_in(self.server, error.address, limit_s):
                raise
            if not await self._wait_for_sign_in(caller, error.previous, limit_s):
                raise
        return await self._use_session(caller, work, repeatable=repeatable)

    async def _use_session(
        self, caller: Caller, work: Callable[[ServerSession], Awaitable[T]], *, repeatable: bool
    ) -> T:
        session = await self._session(caller)
        session.uses += 1
        try:
            if session.token is not None:
                await self._exchange(session.token)
            return await retry_if_safe(lambda: session.supervisor.use(work), repeatable=repeatable)
        except UpstreamError as error:
            if error.status == _UNAUTHORIZED and isinstance(self.target.auth, OAuth):
                previous = session.sign_in
                raise SignInRequiredError(self.server, self.address, previous=previous) from error
            raise
        finally:
            session.uses -= 1

    async def _exchange(self, token: ExchangedToken) -> None:
        limit_s = self.options.connect_timeout_s
        try:
            async with asyncio.timeout(limit_s):
                await token.get()
        except TimeoutError as error:
            detail = f"the token endpoint did not answer within {limit_s:g} s"
            raise UpstreamTimeoutError(self.server, detail, sent=False) from error

    async def _wait_for_sign_in(self, caller: Caller, previous: str, limit_s: float) -> bool:
        """Return True once *caller* has signed in on any replica, False after *limit_s*."""
        with suppress(TimeoutError):
            async with asyncio.timeout(limit_s):
                while True:
                    with suppress(SignInRequiredError):
                        if (await self._oauth_session(caller)).sign_in != previous:
                            return True
                    await asyncio.sleep(_POLL_S)
        return False

    def sign_in_of(self, caller: Caller) -> UserSignIn:
        """Return the sign-in of *caller*.

        Raises:
            InvalidRequestError: If users cannot sign in to this server, or the caller has no name.
        """
        auth, user = self.target.auth, user_key(caller)
        if not isinstance(auth, OAuth) or auth.user_tokens is None or not caller.user:
            raise InvalidRequestError(f"this caller does not sign in to {self.server!r}")
        return UserSignIn(
            server=self.server,
            target=self.target,
            auth=auth,
            options=self.options,
            tokens=auth.user_tokens(user),
            pending=auth.user_tokens(f"{user}-pending"),
            callback=self.address and f"{self.address}/callback",
        )

    async def sign_out(self, caller: Caller) -> None:
        """Delete the tokens of *caller*.

        Raises:
            InvalidRequestError: As for `sign_in_of`.
            StoreError: If the tokens cannot be deleted.
        """
        sign_in = self.sign_in_of(caller)
        for tokens in (sign_in.pending, sign_in.tokens):
            await asyncio.to_thread(tokens.forget)
        self._note_sign_in(user_key(caller), None)

    def _note_sign_in(self, user: str, sign_in: str | None) -> None:
        """Make all sessions of *user* unusable, except the one with *sign_in*."""
        for (owner, session_sign_in), session in self._sessions.items():
            if owner == user:
                session.is_over = session_sign_in != sign_in

    async def close(self) -> None:
        """End all sessions."""
        for key in tuple(self._sessions):
            self._end_session(key)
        if self._closing:
            await asyncio.wait(self._closing)

    async def _session(self, caller: Caller) -> _UserSession:
        if not caller.user:
            raise UpstreamError(
                self.server,
                "is called with the credentials of each user, and this caller has no name: use a "
                "token that names one (user), --user, or Caller(user=…)",
                kind="authorization",
                sent=False,
            )
        if isinstance(self.target.auth, TokenExchange):
            return self._exchange_session(caller, self.target.auth)
        return await self._oauth_session(caller)

    async def _oauth_session(self, caller: Caller) -> _UserSession:
        from gateway.mcp.oauth import read_record  # noqa: PLC0415  (mcp is heavy: a warm start must not pay for it)

        user, sign_in = user_key(caller), self.sign_in_of(caller)
        auth = replace(sign_in.auth, tokens=sign_in.tokens)
        try:
            record = await read_record(auth)
        except StoreError:
            # Use the user's last known sign-in.
            owned = ((key[0], session) for key, session in reversed(self._sessions.items()))
            last = next(
                (session for owner, session in owned if owner == user and not session.is_over), None
            )
            if last is None:
                raise
            return last
        self._note_sign_in(user, record.sign_in if record.access_token else None)
        if not record.access_token:
            raise SignInRequiredError(self.server, self.address, fault=sign_in.tokens.fault)
        # A new sign-in may be a different person's and needs its own session.
        key = user, record.sign_in
        return self._get_or_create(
            key, lambda: (replace(self._target_without_credentials, auth=auth), None)
        )

    def _exchange_session(self, caller: Caller, exchange: TokenExchange) -> _UserSession:
        from gateway.mcp.token_exchange import UserToken, grant_of  # noqa: PLC0415  (mcp is heavy: a warm start must not pay for it)
        from gateway.mcp.transports import guarded_client  # noqa: PLC0415  (likewise)

        if caller.token is None:
            raise UpstreamError(
                self.server,
                "takes the user's access token in exchange, and this caller has no token of "
                "the identity provider",
                kind="authorization",
                sent=False,
            )

        def make() -> tuple[HttpServer, ExchangedToken]:
            token = UserToken(
                self.server,
                exchange,
                lambda: guarded_client(exchange.token_url, Traffic(self.options)),
                clock=self.clock,
            )
            return replace(
                self._target_without_credentials, auth=replace(exchange, token=token)
            ), token

        # Tokens with different claims may have different rights.
        parts = grant_of(caller.token), *sorted(caller.scopes)
        session = self._get_or_create((user_key(caller, *parts), ""), make)
        if session.token is not None:
            session.token.subject = caller.token
        return session

    def _get_or_create(
        self, key: tuple[str, str], make: Callable[[], tuple[HttpServer, ExchangedToken | None]]
    ) -> _UserSession:
        session = self._sessions.pop(key, None)
        if session is None:
            self._make_room()
            target, token = make()
            supervisor = Supervisor(
                self.server, lambda: self.connect(target), self._limits, clock=self.clock
            )
            session = _UserSession(supervisor, token, key[1])
        self._sessions[key] = session
        return session

    def _make_room(self) -> None:
        if len(self._sessions) < self.options.max_user_sessions:
            return
        idle = next((key for key, session in self._sessions.items() if not session.uses), None)
        if idle is None:
            raise UpstreamUnavailableError(
                self.server,
                f"is busy: {self.options.max_user_sessions} users have running calls; try later, "
                "or raise UpstreamOptions.max_user_sessions",
                retry_after_s=self.options.breaker_s,
            )
        self._end_session(idle)

    def _end_session(self, key: tuple[str, str]) -> None:
        supervisor = self._sessions.pop(key).supervisor
        if supervisor.refuse():
            task = asyncio.create_task(supervisor.close(), name=f"closing of {self.server}")
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)
