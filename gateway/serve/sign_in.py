"""Pages where users sign in to servers that are called with their credentials.

The address of a page is no secret and belongs to nobody: the user is the one whose token is typed
there, the same that the user's client sends. So whoever is lured to it signs in for itself (MCP
2026-07-28, elicitation, "Phishing").

* The answer of an authorization server counts only in the browser that began: it has a cookie,
  encrypted and bound to the user, the server and the state. A link to the authorization server
  that somebody else made ends here.
* The token is used once and is not kept. The guard refuses what pages of others send.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Awaitable, Callable, Sequence
from html import escape
from urllib.parse import parse_qs, urlsplit

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from gateway.errors import GatewayError
from gateway.gateway import Gateway
from gateway.mcp.code_flow import LIFE_S
from gateway.registration.user_sign_ins import PATH
from gateway.serve.api.operations import read_limited
from gateway.serve.api.problems import RefusedError
from gateway.storage.encryption import decrypt, encrypt
from gateway.storage.host_key import host_keys
from gateway.types import Caller

Authenticate = Callable[[str], Awaitable[Caller]]
"""Returns the caller that a bearer token names.

Raises:
    RefusedError: It names none.
"""
_COOKIE = "gateway_sign_in"
_MAX_FORM_BYTES = 16 * 1024
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'"
    ),
    # With "no-referrer" browsers send the form with ``Origin: null``, which is foreign.
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}
_PAGE = """<!doctype html><html lang="en"><meta charset="utf-8">
<meta name="viewport" content="width=device-width"><title>{title}</title>
<style>body{{font:1rem/1.5 sans-serif;max-width:34rem;margin:3rem auto;padding:0 1rem}}
label,input,button{{display:block;font:inherit}}input{{width:100%;margin:.25rem 0 1rem}}
button{{margin-bottom:.5rem}}</style><h1>{title}</h1>{body}</html>"""
_FORM = """<p>The tools of {server} are used in your name. You go on to its own page to agree.
Only go on if you asked for it: whoever types a token here lends what that server lets them do to
all who use this gateway with that token.</p>
<form method="post">{token}<button name="action" value="sign_in">Sign in to {server}</button>
<button name="action" value="sign_out">Sign out of {server}</button></form>"""

_FIELD = """<label for="token">Your token for this gateway, as your client sends it</label>
<input id="token" name="token" type="password" autocomplete="off" required>"""


def sign_in_routes(
    gateway: Gateway, authenticate: Authenticate, *, needs_token: bool = True
) -> Sequence[Route]:
    """Return the routes of the pages, for an application behind the guard.

    Args:
        gateway: Whose servers.
        authenticate: Names the user of a token.
        needs_token: Whether there are tokens; else there is one user.
    """
    pages = _Pages(gateway, authenticate, _FIELD if needs_token else "")
    path = f"{PATH}/{{server}}"
    return (
        Route(path, pages.form, methods=["GET"]),
        Route(path, pages.submit, methods=["POST"]),
        Route(f"{path}/callback", pages.callback, methods=["GET"]),
    )


class _Pages:
    def __init__(self, gateway: Gateway, authenticate: Authenticate, token: str) -> None:
        self._token = token
        self._sign_ins = gateway.user_sign_ins
        self._authenticate = authenticate
        # Without a key of the host the callback must come to the same process.
        self._keys = host_keys(gateway.options, "cookies") or (secrets.token_bytes(32),)
        self._is_secure = urlsplit(gateway.options.public_url).scheme == "https"
        self._cookie = f"__Host-{_COOKIE}" if self._is_secure else _COOKIE

    async def form(self, request: Request) -> Response:
        """Ask for the token of the user. The page is the same for any name of a server."""
        server = escape(request.path_params["server"])
        return _page(f"Sign in to {server}", _FORM.format(server=server, token=self._token))

    async def submit(self, request: Request) -> Response:
        """Send the browser of the user to the authorization server, or sign the user out."""
        server = request.path_params["server"]
        try:
            body = await read_limited(request, _MAX_FORM_BYTES, "a form")
            fields = parse_qs(body.decode("utf-8", "replace"))
            caller = await self._authenticate(fields.get("token", [""])[0].strip())
            if fields.get("action") == ["sign_out"]:
                await self._sign_ins.end(server, caller)
                return _message(f"{caller.user} is signed out of {server}.")
            url = await self._sign_ins.begin(server, caller)
        except (RefusedError, GatewayError) as error:
            return _refused(error)
        state = parse_qs(urlsplit(url).query).get("state", [""])[0]
        content = json.dumps([server, caller.tenant, caller.user, state, time.time() + LIFE_S])
        response = RedirectResponse(url, status_code=303, headers=_HEADERS)
        sealed = encrypt(self._keys, content, place=_COOKIE).hex()
        # Lax: the authorization server sends the browser back from a site of its own.
        response.set_cookie(
            self._cookie,
            sealed,
            max_age=int(LIFE_S),
            secure=self._is_secure,
            httponly=True,
            samesite="lax",
        )
        return response

    async def callback(self, request: Request) -> Response:
        """Take the answer of the authorization server, in the browser that began."""
        server, query = request.path_params["server"], request.query_params
        caller = self._bearer_of(request, server, query.get("state", ""))
        if caller is None:
            return _message("This is no answer to a sign-in that began in this browser.", 400)
        if "code" not in query:
            return _message(f"The sign-in to {server} was refused.", 400)
        try:
            await self._sign_ins.complete(
                server,
                caller,
                code=query["code"],
                state=query.get("state", ""),
                issuer=query.get("iss"),
            )
        except GatewayError as error:
            return _refused(error)
        response = _message(f"{caller.user} is signed in to {server}. You may close this page.")
        response.delete_cookie(self._cookie, secure=self._is_secure, httponly=True, samesite="lax")
        return response

    def _bearer_of(self, request: Request, server: str, state: str) -> Caller | None:
        """Return the user whose browser began to sign in to *server* with *state*."""
        try:
            sealed = bytes.fromhex(request.cookies.get(self._cookie, ""))
        except ValueError:
            return None
        content = decrypt(self._keys, sealed, place=_COOKIE)
        if not content:
            return None
        own_server, tenant, user, own_state, until = json.loads(content)
        is_own = own_server == server and secrets.compare_digest(
            own_state.encode(), state.encode("utf-8", "replace")
        )
        # Access was checked when it began; the tokens are kept for this user alone.
        return Caller(user=user, tenant=tenant) if is_own and until >= time.time() else None


def _page(title: str, body: str, status: int = 200) -> Response:
    return HTMLResponse(_PAGE.format(title=title, body=body), status, headers=_HEADERS)


def _message(text: str, status: int = 200) -> Response:
    return _page("Sign-in", f"<p>{escape(text)}</p>", status)


def _refused(error: RefusedError | GatewayError) -> Response:
    status = error.status if isinstance(error, RefusedError) else 400
    return _message(str(error), status)
