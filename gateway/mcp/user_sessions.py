"""The sessions of a server that is called with the credentials of each user: one for each user.

* A session belongs to one user for good. Its credentials come from nowhere else.
* The server's own session lists; no call ever goes over it.
* Sessions are bounded. An idle one ends; if there are too many, the one unused for longest does.

Everything here runs on one loop.
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
_LOOK_S = 0.5
"""How often is looked whether a user has signed in."""


def user_key(caller: Caller, *parts: str) -> str:
    """Return the key of a user's credentials: of its tenant and its name, and of *parts*."""
    text = json.dumps([caller.tenant, caller.user, *parts])
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


@dataclass(frozen=True, slots=True, kw_only=True)
class UserSignIn:
    """How one user signs in to one server."""

    server: str
    target: HttpServer
    auth: OAuth
    options: UpstreamOptions
    tokens: TokenStore
    """Where the tokens of the user are."""
    pending: TokenStore
    """Where a sign-in is kept that has begun."""
    callback: str
    """Where the browser is sent back to; empty if nowhere."""


@dataclass(slots=True, eq=False)
class _UserSession:
    supervisor: Supervisor[ServerSession]
    token: ExchangedToken | None
    """What the user's token was exchanged for, where that is how."""
    sign_in: str
    """Of the user's sign-ins, the one that it is of."""
    is_over: bool = False
    """Whether the user has signed out of it, or in anew."""
    uses: int = 0
    """How many calls are under way, or about to be."""


@dataclass(eq=False, repr=False)
class UserSessions:
    """The sessions of one server.

    Args:
        server: For messages.
        target: How it is reached; its own headers of authorization go with no user's call.
        connect: Opens a session with a target.
        options: Limits.
        clock: Seconds that only grow.
        address: Where users sign in; empty if nowhere.
    """

    server: str
    target: HttpServer
    connect: Callable[[HttpServer], Awaitable[ServerSession]]
    options: UpstreamOptions
    _: KW_ONLY
    clock: Clock
    address: str = ""

    def __post_init__(self) -> None:
        """Begin without a session."""
        self._sessions: dict[tuple[str, str], _UserSession] = {}
        """By user and sign-in; the last used one is last."""
        self._closing = set[asyncio.Task[None]]()
        headers = {
            name: value
            for name, value in self.target.headers.items()
            if name.casefold() != "authorization"
        }
        self._bare = replace(self.target, headers=headers)
        # A server that is idle for a user costs others their sessions.
        self._limits = replace(
            self.options,
            lifecycle="idle" if self.options.lifecycle == "keep_alive" else self.options.lifecycle,
        )

    async def use(
        self, caller: Caller, work: Callable[[ServerSession], Awaitable[T]], *, repeatable: bool
    ) -> T:
        """Do *work* over the session of *caller*.

        Raises:
            SignInRequiredError: The user has no credentials here, or they are refused.
            UpstreamError: As for `Supervisor.use`, or the caller's token cannot be exchanged.
        """
        try:
            return await self._use(caller, work, repeatable=repeatable)
        except SignInRequiredError as error:
            from gateway.mcp.server_requests import ask_to_sign_in  # noqa: PLC0415  (mcp is heavy: a warm start must not pay for it)

            limit_s = self.options.ask_timeout_s
            if not error.address or not await ask_to_sign_in(self.server, error.address, limit_s):
                raise
            if not await self._wait_for_sign_in(caller, error.previous, limit_s):
                raise
        return await self._use(caller, work, repeatable=repeatable)

    async def _use(
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
        """Wait until the user has signed in, also through another replica; return whether."""
        with suppress(TimeoutError):
            async with asyncio.timeout(limit_s):
                while True:
                    with suppress(SignInRequiredError):
                        if (await self._signed_in(caller)).sign_in != previous:
                            return True
                    await asyncio.sleep(_LOOK_S)
        return False

    def sign_in_of(self, caller: Caller) -> UserSignIn:
        """Return how *caller* signs in.

        Raises:
            InvalidRequestError: Users do not sign in to this server, or the caller has no name.
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
        """Forget the tokens of *caller*.

        Raises:
            InvalidRequestError: As for `sign_in_of`.
            StoreError: They cannot be deleted.
        """
        sign_in = self.sign_in_of(caller)
        for tokens in (sign_in.pending, sign_in.tokens):
            await asyncio.to_thread(tokens.forget)
        self._note_sign_in(user_key(caller), None)

    def _note_sign_in(self, user: str, sign_in: str | None) -> None:
        """Let no session of *user* serve but that of *sign_in*; None lets none."""
        for (owner, own), session in self._sessions.items():
            if owner == user:
                session.is_over = own != sign_in

    async def close(self) -> None:
        """End all sessions."""
        for key in tuple(self._sessions):
            self._end(key)
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
            return self._exchanged(caller, self.target.auth)
        return await self._signed_in(caller)

    async def _signed_in(self, caller: Caller) -> _UserSession:
        from gateway.mcp.oauth import read_record  # noqa: PLC0415  (mcp is heavy: a warm start must not pay for it)

        user, sign_in = user_key(caller), self.sign_in_of(caller)
        auth = replace(sign_in.auth, tokens=sign_in.tokens)
        try:
            record = await read_record(auth)
        except StoreError:
            # The last sign-in serves while the store cannot be read.
            owned = ((key[0], each) for key, each in reversed(self._sessions.items()))
            last = next((each for owner, each in owned if owner == user and not each.is_over), None)
            if last is None:
                raise
            return last
        self._note_sign_in(user, record.sign_in if record.access_token else None)
        if not record.access_token:
            raise SignInRequiredError(self.server, self.address, fault=sign_in.tokens.fault)
        # Who signs in anew may be somebody else at the server: that is another session.
        key = user, record.sign_in
        return self._take(key, lambda: (replace(self._bare, auth=auth), None))

    def _exchanged(self, caller: Caller, exchange: TokenExchange) -> _UserSession:
        from gateway.mcp.token_exchange import UserToken, grant_of  # noqa: PLC0415  (mcp is heavy: a warm start must not pay for it)
        from gateway.mcp.transports import guarded_client  # noqa: PLC0415  (likewise)

        if caller.token is None:
            raise UpstreamError(
                self.server,
                "takes the user's access token in exchange, and this caller came without one of "
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
            return replace(self._bare, auth=replace(exchange, token=token)), token

        # What a token that grants less may get is not what another one got.
        parts = grant_of(caller.token), *sorted(caller.scopes)
        session = self._take((user_key(caller, *parts), ""), make)
        if session.token is not None:
            session.token.subject = caller.token
        return session

    def _take(
        self, key: tuple[str, str], make: Callable[[], tuple[HttpServer, ExchangedToken | None]]
    ) -> _UserSession:
        """Return the session *key*, a new one if there is none."""
        found = self._sessions.pop(key, None)
        if found is None:
            self._make_room()
            target, token = make()
            supervisor = Supervisor(
                self.server, lambda: self.connect(target), self._limits, clock=self.clock
            )
            found = _UserSession(supervisor, token, key[1])
        self._sessions[key] = found
        return found

    def _make_room(self) -> None:
        if len(self._sessions) < self.options.max_user_sessions:
            return
        idle = next((key for key, each in self._sessions.items() if not each.uses), None)
        if idle is None:
            raise UpstreamUnavailableError(
                self.server,
                f"is busy: {self.options.max_user_sessions} users have calls under way; ask later, "
                "or raise UpstreamOptions.max_user_sessions",
                retry_after_s=self.options.breaker_s,
            )
        self._end(idle)

    def _end(self, key: tuple[str, str]) -> None:
        supervisor = self._sessions.pop(key).supervisor
        if supervisor.refuse():
            task = asyncio.create_task(supervisor.close(), name=f"closing of {self.server}")
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)
