"""Pages where users sign in to upstream servers that are called with the users' own credentials.

The user is signed in at an identity provider (`gateway.serve.account`), or owns the token entered
on the page. Whoever follows an attacker's link therefore signs in only for themselves (MCP
2026-07-28, elicitation, "Phishing").

An authorization server's response counts only in the browser where the sign-in started, which has
an encrypted cookie for the user, the server and the state. An entered token is not stored.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from html import escape
from urllib.parse import parse_qs, urlsplit

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from gateway.errors import GatewayError
from gateway.gateway import Gateway
from gateway.mcp.code_flow import LIFE_S
from gateway.serve.account import (
    HEADERS,
    SealedCookie,
    error_page,
    link,
    message,
    page,
    sign_in_links,
    signed_out_address,
)
from gateway.serve.api.problems import RefusedError
from gateway.serve.api.requests import read_limited
from gateway.serve.console.access import FORM_FIELD, ConsoleSession, Sessions, check_form
from gateway.servers.user_sign_ins import PATH
from gateway.types import Caller

Authenticate = Callable[[str], Awaitable[Caller]]
"""Returns the caller of a bearer token.

Raises:
    RefusedError: If the token is invalid.
"""
_MAX_FORM_BYTES = 16 * 1024
_INTRO = """<p>The tools of {server} are used in your name. You continue on its own page to agree.
Continue only if you requested this: everyone who uses this gateway with the same account or token
can then use that server with your permissions.</p>{form}"""
_ACTIONS = """<form method="post">{who}
<button name="action" value="sign_in">Sign in to {server}</button>
<button name="action" value="sign_out">Sign out of {server}</button>{leave}</form>"""
_FOLDED = "<details><summary>With a token</summary>{form}</details>"

_FIELD = """<label for="token">Your token for this gateway, as your client sends it</label>
<input id="token" name="token" type="password" autocomplete="off" required>"""
_SESSION = """<p>You are signed in here as {user}.</p>
<input type="hidden" name="{field}" value="{csrf}">"""
_LEAVE = """<button name="action" value="leave">Sign out of this gateway</button>"""


def sign_in_routes(
    gateway: Gateway, authenticate: Authenticate, sessions: Sessions
) -> Sequence[Route]:
    """Return the routes of the sign-in pages, for an application behind the guard.

    *authenticate* returns the caller of a bearer token. If *sessions* have a launch token, the API
    needs no token, and there is only one user.
    """
    pages = _Pages(gateway, authenticate, sessions)
    path = f"{PATH}/{{server}}"
    return (
        Route(path, pages.form, methods=["GET"]),
        Route(path, pages.submit, methods=["POST"]),
        Route(f"{path}/callback", pages.callback, methods=["GET"]),
    )


class _Pages:
    def __init__(self, gateway: Gateway, authenticate: Authenticate, sessions: Sessions) -> None:
        self._token = "" if sessions.launch_token else _FIELD
        self._sign_ins = gateway.user_sign_ins
        self._authenticate = authenticate
        self._sessions = sessions
        # Without a key of the host, the response must reach the same process.
        self._cookie = SealedCookie("gateway_sign_in", gateway.options, LIFE_S)
        self._is_secure = urlsplit(gateway.options.public_url).scheme == "https"

    async def form(self, request: Request) -> Response:
        server = escape(request.path_params["server"])
        if session := self._session(request):
            user = escape(session.caller.user or session.bearer.name)
            who = _SESSION.format(user=user, field=FORM_FIELD, csrf=session.csrf)
            form = _ACTIONS.format(server=server, who=who, leave=_LEAVE)
        else:
            form = _ACTIONS.format(server=server, who=self._token, leave="")
            links = sign_in_links(self._sessions, request.url.path)
            if providers := "".join(link(url, f"Sign in at {name}") for url, name in links):
                form = providers + _FOLDED.format(form=form)
        return page(f"Sign in to {server}", _INTRO.format(server=server, form=form))

    def _session(self, request: Request) -> ConsoleSession | None:
        # A sibling domain may have set a cookie that is not bound to this host.
        is_bound = self._sessions.is_secure(request) or not self._is_secure
        return self._sessions.find_browser_session(request) if self._token and is_bound else None

    async def _caller(
        self, session: ConsoleSession | None, fields: Mapping[str, Sequence[str]]
    ) -> Caller:
        """Return the caller of the form's token, or else of the browser's *session*.

        Raises:
            RefusedError: If the token is missing or invalid without a session, or the form belongs
                to another session.
        """
        token = fields.get("token", [""])[0].strip()
        if token or session is None:
            return await self._authenticate(token)
        check_form(session, fields.get(FORM_FIELD, [""])[0])
        return session.caller

    async def submit(self, request: Request) -> Response:
        server, session = request.path_params["server"], self._session(request)
        try:
            body = await read_limited(request, _MAX_FORM_BYTES, "a form")
            fields = parse_qs(body.decode("utf-8", "replace"))
            caller = await self._caller(session, fields)
            if session and fields.get("action") == ["leave"]:
                self._sessions.end(session)
                return RedirectResponse(signed_out_address(session.bearer.issuer), 303, HEADERS)
            if fields.get("action") == ["sign_out"]:
                await self._sign_ins.end(server, caller)
                return message(f"{caller.user} is signed out of {server}.")
            url = await self._sign_ins.begin(server, caller)
        except (RefusedError, GatewayError) as error:
            return error_page(error)
        state = parse_qs(urlsplit(url).query).get("state", [""])[0]
        content = [server, caller.tenant, caller.user, state, time.time() + LIFE_S]
        response = RedirectResponse(url, status_code=303, headers=HEADERS)
        self._cookie.set(response, content, secure=self._is_secure)
        return response

    async def callback(self, request: Request) -> Response:
        server, query = request.path_params["server"], request.query_params
        caller = self._bearer_of(request, server, query.get("state", ""))
        if caller is None:
            return message("This sign-in did not start in this browser.", 400)
        if "code" not in query:
            return message(f"The sign-in to {server} was refused.", 400)
        try:
            await self._sign_ins.complete(
                server,
                caller,
                code=query["code"],
                state=query.get("state", ""),
                issuer=query.get("iss"),
            )
        except GatewayError as error:
            return error_page(error)
        response = message(f"{caller.user} is signed in to {server}. You may close this page.")
        self._cookie.delete(response, secure=self._is_secure)
        return response

    def _bearer_of(self, request: Request, server: str, state: str) -> Caller | None:
        """Return the user whose browser started this sign-in, or None."""
        content = self._cookie.get(request, secure=self._is_secure)
        if not content:
            return None
        own_server, tenant, user, own_state, until = content
        is_own = own_server == server and secrets.compare_digest(
            own_state.encode(), state.encode("utf-8", "replace")
        )
        # The user's access was checked when the sign-in started.
        return Caller(user=user, tenant=tenant) if is_own and until >= time.time() else None
