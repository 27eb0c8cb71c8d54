"""Authorization server built from the SDK, and an MCP server that requires its tokens.

Every secret contains the word ``SECRET``.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path

from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    AuthorizeError,
    OAuthAuthorizationServerProvider,
    RefreshToken,
    TokenError,
    construct_redirect_uri,
)
from mcp.server.auth.routes import build_metadata, create_auth_routes
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions, RevocationOptions
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyHttpUrl, AnyUrl
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from tests.core.mcp.servers.plain import plain

SCOPES = ["read", "write"]
BY_HAND = "by-hand"
SECRET = "by-hand-SECRET"


@dataclass
class Authority(OAuthAuthorizationServerProvider[AuthorizationCode, RefreshToken, AccessToken]):
    """An authorization server that accepts every sign-in unless `refuses` is set."""

    life_s: int = 3600
    refuses: bool = False
    refreshes: bool = True
    registers: bool = True
    clients: dict[str, OAuthClientInformationFull] = field(default_factory=dict)
    codes: dict[str, AuthorizationCode] = field(default_factory=dict)
    tokens: dict[str, AccessToken] = field(default_factory=dict)
    renewals: dict[str, RefreshToken] = field(default_factory=dict)
    seen: list[str] = field(default_factory=list)
    """Completed steps in order: registered, authorized, exchanged, refreshed."""
    scopes: list[list[str]] = field(default_factory=list)
    headers: list[str] = field(default_factory=list)
    """Names of all received headers."""
    address: str = ""
    """Redirect URL of a browser."""
    number: int = 0

    def app(self, port: int) -> ASGIApp:
        issuer = AnyHttpUrl(f"http://127.0.0.1:{port}")
        options = ClientRegistrationOptions(enabled=self.registers, valid_scopes=SCOPES)
        metadata = build_metadata(issuer, None, options, RevocationOptions())
        document = metadata.model_dump(mode="json", exclude_none=True)

        async def described(_request: Request) -> Response:
            return JSONResponse({**document, "client_id_metadata_document_supported": True})

        path = "/.well-known/oauth-authorization-server"
        routes = create_auth_routes(self, issuer, client_registration_options=options)
        inner = Starlette(
            routes=[Route(path, described), *(route for route in routes if route.path != path)]
        )

        async def counted(scope: Scope, receive: Receive, send: Send) -> None:
            self.headers.extend(name.decode() for name, _ in scope.get("headers", []))
            await inner(scope, receive, send)

        return counted

    def guarded(self, port: int, authority: int, record: Path) -> ASGIApp:
        """Return the MCP server's app, for tokens of the server on port *authority*."""
        settings = AuthSettings(
            issuer_url=AnyHttpUrl(f"http://127.0.0.1:{authority}"),
            resource_server_url=AnyHttpUrl(f"http://127.0.0.1:{port}/mcp"),
            required_scopes=["read"],
            validate_token_resource=True,
        )
        return plain(record).streamable_http_app(
            auth=settings, token_verifier=_Verifier(self), json_response=True
        )

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        if client_id != BY_HAND and not client_id.startswith("https://"):
            return self.clients.get(client_id)
        # Registered by hand, or with a metadata URL.
        secret = SECRET if client_id == BY_HAND else None
        return OAuthClientInformationFull(
            client_id=client_id,
            client_secret=secret,
            redirect_uris=[AnyUrl(self.address)],
            token_endpoint_auth_method="client_secret_post" if secret else "none",
            scope=" ".join(SCOPES),
        )

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        self.seen.append("registered")
        self.clients[client_info.client_id] = client_info

    async def authorize(
        self, client: OAuthClientInformationFull, params: AuthorizationParams
    ) -> str:
        self.seen.append("authorized")
        self.scopes.append(params.scopes or [])
        if self.refuses:
            raise AuthorizeError(error="access_denied", error_description="SECRET reasons")
        code = AuthorizationCode(
            code=self._made("code"),
            scopes=params.scopes or ["read"],
            expires_at=time.time() + 60,
            client_id=client.client_id,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        self.codes[code.code] = code
        return construct_redirect_uri(str(params.redirect_uri), code=code.code, state=params.state)

    async def load_authorization_code(
        self, _client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        self.seen.append("exchanged")
        del self.codes[authorization_code.code]
        return self._given(client.client_id, authorization_code.scopes, authorization_code.resource)

    async def load_refresh_token(
        self, _client: OAuthClientInformationFull, refresh_token: str
    ) -> RefreshToken | None:
        return self.renewals.get(refresh_token)

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        self.seen.append("refreshed")
        if not self.refreshes:
            raise TokenError(error="invalid_grant", error_description="SECRET reasons")
        del self.renewals[refresh_token.token]
        return self._given(client.client_id, scopes, refresh_token.resource)

    async def load_access_token(self, token: str) -> AccessToken | None:
        return self.tokens.get(token)

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        self.tokens.pop(token.token, None)

    def _given(self, client: str, scopes: list[str], resource: str | None) -> OAuthToken:
        access, renewal = self._made("access"), self._made("refresh")
        self.tokens[access] = AccessToken(
            token=access, client_id=client, scopes=scopes, resource=resource
        )
        self.renewals[renewal] = RefreshToken(
            token=renewal, client_id=client, scopes=scopes, resource=resource
        )
        return OAuthToken(
            access_token=access,
            refresh_token=renewal,
            expires_in=self.life_s,
            scope=" ".join(scopes),
        )

    def _made(self, kind: str) -> str:
        self.number += 1
        return f"{kind}-SECRET-{self.number}"


@dataclass
class _Verifier:
    authority: Authority

    async def verify_token(self, token: str) -> AccessToken | None:
        return await self.authority.load_access_token(token)
