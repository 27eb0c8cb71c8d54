"""The sign-ins of users to servers that are called with their credentials."""

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
"""Below it are the pages of `gateway serve --http` where users sign in."""


@dataclass(eq=False, repr=False, slots=True)
class UserSignIns:
    """The sign-ins of the users of one gateway.

    Args:
        servers: The servers.
        bridge: Owns the loop of their sessions.
        registry: The servers as entities, with the scopes that they need.
    """

    servers: ServerPool
    bridge: Bridge
    registry: EntityRegistry

    async def begin(self, server: str, caller: Caller) -> str:
        """Return the address at which *caller* signs in to *server*.

        Only the browser of that very user may be sent there: see `gateway.serve.sign_in`.

        Raises:
            InvalidRequestError: The caller has no name, or may sign in to no such server.
            UpstreamError: The server offers no sign-in, cannot be reached, or is not the approved
                one where that is needed.
        """
        sign_in = self._admitted(server, caller).sign_in_of(caller)
        if not sign_in.callback:
            raise InvalidRequestError("nobody can sign in: the host has set no public_url")
        self.servers.cached[server].check_command_line()
        from gateway.mcp.code_flow import begin  # noqa: PLC0415  (mcp is heavy: a search needs none)

        return await self.bridge.run(lambda: begin(sign_in))

    async def complete(
        self, server: str, caller: Caller, *, code: str, state: str, issuer: str | None
    ) -> None:
        """Keep the tokens that *code* is good for, as those of *caller*.

        Args:
            server: The server.
            caller: The user that began; its scopes counted then.
            code: What the browser brought back.
            state: Likewise; it must be that of the sign-in that the user began last.
            issuer: Likewise (RFC 9207); None if it brought none.

        Raises:
            InvalidRequestError: As for `begin`.
            UpstreamError: It answers nothing that was begun, or is good for nothing.
        """
        sign_in = self._users(server).sign_in_of(caller)
        from gateway.mcp.code_flow import complete  # noqa: PLC0415  (mcp is heavy: a search needs none)

        await self.bridge.run(lambda: complete(sign_in, code, state, issuer))

    async def end(self, server: str, caller: Caller) -> None:
        """Forget the tokens of *caller*: it is signed out.

        Raises:
            InvalidRequestError: As for `begin`.
            StoreError: They cannot be deleted.
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
