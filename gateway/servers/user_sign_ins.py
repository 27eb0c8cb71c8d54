from __future__ import annotations

from dataclasses import dataclass

from gateway.catalog.identity import entity_id
from gateway.errors import InvalidRequestError
from gateway.mcp.user_sessions import UserSessions
from gateway.runtime.background_loop import Bridge
from gateway.servers.pool import ServerPool
from gateway.sources.entity_registry import EntityRegistry
from gateway.types import Caller

PATH = "/sign-in"
"""Path prefix of the sign-in pages of `gateway serve --http`."""


@dataclass(eq=False, repr=False, slots=True)
class UserSignIns:
    """Users' sign-ins to servers that are called with each user's own credentials.

    Args:
        registry: The servers as entities, with the scopes that a caller needs.
    """

    servers: ServerPool
    bridge: Bridge
    registry: EntityRegistry

    async def begin(self, server: str, caller: Caller) -> str:
        """Return the URL at which *caller* signs in to *server*.

        Only the caller's own browser may be redirected to this URL; see `gateway.serve.sign_in`.

        Raises:
            InvalidRequestError: If the caller has no user name, or may not sign in to the server.
            UpstreamError: If the server has no sign-in, is unreachable, or must be approved first.
        """
        sign_in = self._admitted(server, caller).sign_in_of(caller)
        if not sign_in.callback:
            raise InvalidRequestError("sign-in is not possible: the host has not set public_url")
        self.servers.cached[server].check_command_line()
        from gateway.mcp.code_flow import begin  # noqa: PLC0415  (mcp is heavy: a search needs none)

        return await self.bridge.run(lambda: begin(sign_in))

    async def complete(
        self, server: str, caller: Caller, *, code: str, state: str, issuer: str | None
    ) -> None:
        """Exchange *code* for tokens, and store them for *caller*. Scopes are not checked again.

        Args:
            server: The server.
            caller: The user that began the sign-in.
            code: The authorization code from the browser.
            state: The state from the browser. It must be from the user's latest sign-in.
            issuer: The issuer from the browser (RFC 9207); None if missing.

        Raises:
            InvalidRequestError: If the caller has no user name, or users cannot sign in to the
                server.
            UpstreamError: If the state belongs to no sign-in, or the code is invalid.
        """
        sign_in = self._users(server).sign_in_of(caller)
        from gateway.mcp.code_flow import complete  # noqa: PLC0415  (mcp is heavy: a search needs none)

        await self.bridge.run(lambda: complete(sign_in, code, state, issuer))

    async def end(self, server: str, caller: Caller) -> None:
        """Sign *caller* out, and delete the tokens.

        Raises:
            InvalidRequestError: If the caller has no user name, or may not sign in to the server.
            StoreError: If the tokens cannot be deleted.
        """
        users = self._admitted(server, caller)
        await self.bridge.run(lambda: users.sign_out(caller))

    def _admitted(self, server: str, caller: Caller) -> UserSessions:
        registration = self.servers.registry.all().get(server)
        itself = self.registry.entities.get(entity_id("server", server, server))
        scopes = itself.scopes if itself is not None else frozenset()
        if registration is None or not caller.holds(registration.access.scopes | scopes):
            raise InvalidRequestError(f"no user signs in to {server!r}")
        return self._users(server)

    def _users(self, server: str) -> UserSessions:
        source = self.servers.cached.get(server)
        users = source.live.users if source is not None else None
        if users is None:
            raise InvalidRequestError(f"no user signs in to {server!r}")
        return users
