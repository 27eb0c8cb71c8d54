"""Token endpoint, and an MCP server that requires its tokens and records their owners.

Every secret contains the word ``SECRET``.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qs

from mcp.shared.auth import OAuthClientInformationFull, OAuthMetadata, OAuthToken
from pydantic import AnyHttpUrl, AnyUrl
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from gateway.mcp.oauth import SignInRecord
from tests.core.mcp.servers.plain import plain

SERVICE = {"service-SECRET": "service"}
"""Owner of the server's own credential."""


def _subject(token: str) -> str:
    kind, _, user = token.partition("-SECRET-")
    return user if kind == "subject" else ""


@dataclass
class Delegation:
    subject: Callable[[str], str] = _subject
    """Returns the owner of a token to exchange; empty for an unknown token."""
    life_s: int | None = 3600
    owners: dict[str, str] = field(default_factory=dict)
    """Users, keyed by valid access token."""
    refreshes: dict[str, str] = field(default_factory=dict)
    """Users, keyed by refresh token, each valid once."""
    calls: list[tuple[str, str]] = field(default_factory=list)
    """Text of each call, and owner of its token."""
    requests: Counter[str] = field(default_factory=Counter)
    """Number of token requests, keyed by grant type."""
    forms: list[dict[str, str]] = field(default_factory=list)
    secrets: list[str] = field(default_factory=list)
    """Authorization headers received by the token endpoint."""
    before_answer: Callable[[], Awaitable[object]] | None = None
    """Awaited before the endpoint answers."""
    number: int = 0
    port: int = 0

    def give(self, user: str) -> OAuthToken:
        self.number += 1
        access, refresh = f"access-SECRET-{self.number}", f"refresh-SECRET-{self.number}"
        self.owners[access], self.refreshes[refresh] = user, user
        return OAuthToken(access_token=access, refresh_token=refresh, expires_in=self.life_s)

    def revoke(self, user: str) -> None:
        self.owners = {token: owner for token, owner in self.owners.items() if owner != user}

    def record(self, user: str) -> str:
        """Return the sign-in of *user* as a token store has it."""
        root = f"http://127.0.0.1:{self.port}"
        metadata = OAuthMetadata(
            issuer=AnyHttpUrl(root),
            authorization_endpoint=AnyHttpUrl(f"{root}/authorize"),
            token_endpoint=AnyHttpUrl(f"{root}/token"),
        )
        tokens = self.give(user)
        client = OAuthClientInformationFull(
            client_id="c", redirect_uris=[AnyUrl("http://127.0.0.1/")]
        )
        record = SignInRecord(client=client, giver=metadata, sign_in=tokens.access_token)
        return record.with_tokens(tokens).model_dump_json(exclude_none=True)

    def endpoint(self, port: int) -> ASGIApp:
        self.port = port
        return Starlette(routes=[Route("/token", self._token, methods=["POST"])])

    async def _token(self, request: Request) -> Response:
        fields = parse_qs((await request.body()).decode())
        form = {name: values[0] for name, values in fields.items()}
        self.forms.append(form)
        self.secrets.append(request.headers.get("authorization", ""))
        if self.before_answer is not None:
            await self.before_answer()
        grant = form["grant_type"].rpartition(":")[2]
        self.requests[grant] += 1
        if grant == "refresh_token":
            user = self.refreshes.pop(form["refresh_token"], "")
        else:
            user = self.subject(form["subject_token"])
        if not user:
            refusal = {"error": "invalid_grant", "error_description": "SECRET reasons"}
            return JSONResponse(refusal, 400)
        return JSONResponse(self.give(user).model_dump(mode="json", exclude_none=True))

    def guarded(self, record: Path) -> ASGIApp:
        inner = plain(record).streamable_http_app(json_response=True)

        async def guard(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http":
                await inner(scope, receive, send)
                return
            request = Request(scope, receive)
            token = request.headers.get("authorization", "").removeprefix("Bearer ")
            body = await request.body()
            user = self.owners.get(token, SERVICE.get(token, ""))
            if not user:
                await JSONResponse({"error": "invalid_token"}, 401)(scope, receive, send)
                return
            self._note(body, user)
            is_sent = False

            async def again() -> dict[str, object]:
                nonlocal is_sent
                if is_sent:
                    return dict(await receive())
                is_sent = True
                return {"type": "http.request", "body": body, "more_body": False}

            await inner(scope, again, send)

        return guard

    def _note(self, body: bytes, user: str) -> None:
        message = json.loads(body or b"{}")
        if message.get("method") == "tools/call":
            self.calls.append((message["params"]["arguments"].get("text", ""), user))
