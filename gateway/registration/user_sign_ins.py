"""The sign-ins of users to servers that are called with their credentials."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from gateway.errors import InvalidRequestError
from gateway.mcp.servers import HttpServer, OAuth, TokenStore
from gateway.mcp.user_sessions import user_key
from gateway.options import Options
from gateway.registration.servers import Servers
from gateway.runtime.background_loop import Bridge
from gateway.types import Caller

PATH = "/sign-in"
"""Below it are the pages of `gateway serve --http` where users sign in."""


@dataclass(frozen=True, slots=True)
class _Place:
    target: HttpServer
    auth: OAuth
    """With the place of the user's tokens."""
    pending: TokenStore
    """Where a sign-in is kept that has begun."""


@dataclass(eq=False, repr=False, slots=True)
class UserSignIns:
    """The sign-ins of the users of one gateway.

    Args:
        servers: The servers.
        bridge: Owns the loop of their sessions.
        options: The address of this gateway, and limits.
    """

    servers: Servers
    bridge: Bridge
    options: Options

    async def begin(self, server: str, caller: Caller) -> str:
        """Return the address at which *caller* signs in to *server*.

        Only the browser of that very user may be sent there: see `gateway.serve.sign_in`.

        Raises:
            InvalidRequestError: The caller has no name, or may sign in to no such server.
            UpstreamError: The server offers no sign-in, or cannot be reached.
        """
        place = self._place(server, caller)
        if not self.options.public_url:
            raise InvalidRequestError("nobody can sign in: the host has set no public_url")
        callback = f"{self.options.public_url.rstrip('/')}{PATH}/{server}/callback"
        from gateway.mcp.code_flow import begin  # noqa: PLC0415  (mcp is heavy: a search needs none)

        return await self.bridge.run(
            lambda: begin(
                server,
                place.target,
                place.auth,
                self.options.upstream,
                pending=place.pending,
                callback=callback,
            )
        )

    async def complete(
        self, server: str, caller: Caller, *, code: str, state: str, issuer: str | None
    ) -> None:
        """Keep the tokens that *code* is good for, as those of *caller*.

        Args:
            server: The server.
            caller: The user who began.
            code: What the browser brought back.
            state: Likewise; it must be that of the sign-in that the user began last.
            issuer: Likewise (RFC 9207); None if it brought none.

        Raises:
            InvalidRequestError: As for `begin`.
            UpstreamError: It answers nothing that was begun, or is good for nothing.
        """
        place = self._place(server, caller)
        from gateway.mcp.code_flow import complete  # noqa: PLC0415  (mcp is heavy: a search needs none)

        await self.bridge.run(
            lambda: complete(
                server,
                place.target,
                place.auth,
                self.options.upstream,
                pending=place.pending,
                code=code,
                state=state,
                issuer=issuer,
            )
        )

    async def end(self, server: str, caller: Caller) -> None:
        """Forget the tokens of *caller*: it is signed out.

        Raises:
            InvalidRequestError: As for `begin`.
            StoreError: They cannot be deleted.
        """
        place = self._place(server, caller)
        for tokens in (place.pending, place.auth.tokens):
            if tokens is not None:
                await asyncio.to_thread(tokens.forget)

    def _place(self, server: str, caller: Caller) -> _Place:
        source = self.servers.cached.get(server)
        registration = self.servers.registry.all().get(server)
        target = source.live.target if source is not None else None
        auth = target.auth if isinstance(target, HttpServer) else None
        if (
            not isinstance(target, HttpServer)
            or not isinstance(auth, OAuth)
            or not auth.per_user
            or auth.user_tokens is None
            or registration is None
            or not caller.holds(registration.access.scopes)
        ):
            raise InvalidRequestError(f"no user signs in to {server!r}")
        if not caller.user:
            raise InvalidRequestError("the caller has no name: use a token that names a user")
        key = user_key(caller)
        own = auth.for_user(key)
        return _Place(target, own, auth.user_tokens(f"{key}-pending"))
