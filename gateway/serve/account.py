"""Sign-in of browsers at identity providers, encrypted cookies, and simple HTML pages.

The state of a sign-in is in an encrypted cookie, so an attacker cannot sign another browser in. A
sign-in returns only to pages of this server. Addresses never contain tokens. The browser
immediately leaves the one address that contains the provider's code.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from html import escape
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from gateway.errors import GatewayError
from gateway.options import Options
from gateway.runtime.cache import Cache
from gateway.serve.api.problems import RefusedError
from gateway.serve.console.access import Sessions
from gateway.serve.guard import ACCOUNT, CONSOLE
from gateway.serve.identity.code_flow import PendingSignIn, ProviderSignIn
from gateway.serve.identity.issuers import CALLBACK
from gateway.servers.user_sign_ins import PATH as SIGN_IN
from gateway.storage.host_key import decrypt, encrypt, host_keys


class SealedCookie:
    """Encrypted cookie that stores data in the browser between two requests.

    It is SameSite=Lax, because another site redirects the browser back.

    Args:
        name: Name, with the prefix ``__Host-`` over HTTPS, so that sibling domains cannot set it.
        options: Options with the host's encryption key, which replicas share. Without a key, only
            this process can read the cookie.
        life_s: Maximum age of the cookie.
    """

    def __init__(self, name: str, options: Options, life_s: float) -> None:
        self._base_name, self._life_s = name, int(life_s)
        self._keys = host_keys(options, "cookies") or (secrets.token_bytes(32),)

    def set(self, response: Response, content: object, *, secure: bool) -> None:
        """Set the cookie in *response* to *content*, a JSON value. *secure* is True for HTTPS."""
        text = json.dumps(content, ensure_ascii=False)
        name = self._name(secure=secure)
        # With the name in the encryption, the value is invalid in another cookie.
        value = encrypt(self._keys, text, place=name).hex()
        response.set_cookie(name, value, self._life_s, secure=secure, httponly=True, samesite="lax")

    def get(self, request: Request, *, secure: bool) -> Any:
        """Return the cookie's content. None if it is missing or invalid."""
        name = self._name(secure=secure)
        try:
            sealed = bytes.fromhex(request.cookies.get(name, ""))
        except ValueError:
            return None
        text = decrypt(self._keys, sealed, place=name)
        return json.loads(text) if text else None

    def delete(self, response: Response, *, secure: bool) -> None:
        """Delete the cookie in *response*."""
        name = self._name(secure=secure)
        response.delete_cookie(name, secure=secure, httponly=True, samesite="lax")

    def _name(self, *, secure: bool) -> str:
        return f"__Host-{self._base_name}" if secure else self._base_name


LIFE_S = 600.0
"""Maximum duration of a sign-in, in seconds."""
_MAX_USED = 10_000
_MAX_PATH_BYTES = 1000
"""Maximum length of the path to return to. A longer one does not fit into a cookie."""
_PAGES = (CONSOLE, SIGN_IN)
_FOREIGN = (
    "This sign-in did not start in this browser in the last ten minutes, or it was already used."
    " Open the page that you want again, and sign in there."
)
_ADVICE: Mapping[int, str] = {
    401: "The identity provider signed you in, but this gateway does not accept its token: "
    "{reason}. Tell the administrator of this gateway.",
    403: "You are signed in, but {reason}. Ask the administrator of the identity provider for "
    "them.",
}
"""Messages for the person after a failed sign-in, keyed by HTTP status."""


def local_path(path: str) -> str:
    """Return *path* if it is a page for sign-in or of the console, otherwise `CONSOLE`.

    Links then never lead to another site. A path of more than 1,000 bytes is replaced too.
    """
    is_own = any(path == root or path.startswith(f"{root}/") for root in _PAGES)
    is_plain = "\\" not in path and path.isprintable()
    return path if is_own and is_plain and len(path.encode()) <= _MAX_PATH_BYTES else CONSOLE


def sign_in_links(sessions: Sessions, to: str) -> Iterator[tuple[str, str]]:
    """Yield (address that starts a sign-in, provider's name) for each identity provider.

    The browser returns to *to*, a path of this server.
    """
    for issuer, sign_in in sessions.authenticator.sign_ins.items():
        yield _address(issuer, to), sign_in.label


def signed_out_address(issuer: str) -> str:
    """Return the address of the page after a sign-out from *issuer*."""
    return f"{ACCOUNT}/signed-out?{urlencode({'issuer': issuer})}"


def account_routes(sessions: Sessions, options: Options) -> Sequence[Route]:
    """Return the routes below `ACCOUNT`, for an application behind the guard."""
    pages = _Pages(sessions, options)
    return (
        Route(f"{ACCOUNT}/sign-in", pages.begin, methods=["GET"]),
        Route(CALLBACK, pages.complete, methods=["GET"]),
        Route(f"{ACCOUNT}/signed-out", pages.signed_out, methods=["GET"]),
    )


class _Pages:
    def __init__(self, sessions: Sessions, options: Options) -> None:
        self._sessions = sessions
        self._cookie = SealedCookie("gateway_account", options, LIFE_S)
        self._used = Cache[bool]("used_sign_ins", max_items=_MAX_USED, ttl_s=LIFE_S)

    async def begin(self, request: Request) -> Response:
        """Redirect the browser to the identity provider."""
        to = local_path(request.query_params.get("to", ""))
        try:
            sign_in = self._provider(request.query_params.get("issuer", ""))
            url, pending = await sign_in.begin()
        except RefusedError as error:
            return error_page(error, more=link(to, "Go back"))
        response = RedirectResponse(url, 303, HEADERS)
        content = {"pending": asdict(pending), "to": to, "until": time.time() + LIFE_S}
        self._cookie.set(response, content, secure=self._sessions.is_secure(request))
        return response

    async def complete(self, request: Request) -> Response:
        """Handle the provider's response in the browser where the sign-in started."""
        response = await self._answer(request)
        # The address contains a code, which other pages must not get.
        response.headers["Referrer-Policy"] = "no-referrer"
        return response

    async def _answer(self, request: Request) -> Response:
        query, is_secure = request.query_params, self._sessions.is_secure(request)
        content = self._cookie.get(request, secure=is_secure)
        if content is None or content["until"] < time.time():
            return message(_FOREIGN, 400)
        pending, to = PendingSignIn(**content["pending"]), content["to"]
        if query.get("state") != pending.state or self._used.peek(pending.state):
            return message(_FOREIGN, 400)
        self._used.put(pending.state, True)
        response = await self._finish(request, pending, to)
        self._cookie.delete(response, secure=is_secure)
        return response

    async def _finish(self, request: Request, pending: PendingSignIn, to: str) -> Response:
        query, change = request.query_params, self._sessions.authenticator.changes
        again = link(_address(pending.issuer, to), "Sign in again")
        try:
            sign_in = self._provider(pending.issuer)
            bearer = await sign_in.complete(pending, query.get("code", ""), query.get("iss"))
        except RefusedError as error:
            text = _ADVICE.get(error.status, "{reason}").format(reason=error)
            return message(text, error.status, more=again)
        # After a redirect from the provider's site, the browser would not send the strict cookie.
        go_on = f'<meta http-equiv="refresh" content="0;url={escape(to)}">'
        response = page("You are signed in", link(to, "Go on"), head=go_on)
        self._sessions.set_cookie(response, request, self._sessions.admit(bearer, change))
        return response

    async def signed_out(self, request: Request) -> Response:
        """Return a page with a link to sign out at the provider too."""
        issuer = request.query_params.get("issuer", "")
        sign_in = self._sessions.authenticator.sign_ins.get(issuer)
        url = await sign_in.sign_out_address() if sign_in else ""
        provider_link = link(url, f"Sign out at {sign_in.label} too") if sign_in and url else ""
        return message(
            "You are signed out here.", more=f"{provider_link}{link(CONSOLE, 'Sign in again')}"
        )

    def _provider(self, issuer: str) -> ProviderSignIn:
        sign_in = self._sessions.authenticator.sign_ins.get(issuer)
        if sign_in is None:
            raise RefusedError(
                404, "unknown_provider", "This gateway does not offer a sign-in at this provider."
            )
        return sign_in


def _address(issuer: str, to: str) -> str:
    return f"{ACCOUNT}/sign-in?{urlencode({'issuer': issuer, 'to': to})}"


HEADERS: Mapping[str, str] = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'"
    ),
    # With "no-referrer", browsers send forms with ``Origin: null``, which the guard rejects.
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}
_PAGE = """<!doctype html><html lang="en"><meta charset="utf-8">
<meta name="viewport" content="width=device-width">{head}<title>{title}</title>
<style>body{{font:1rem/1.5 sans-serif;max-width:34rem;margin:3rem auto;padding:0 1rem}}
label,input,button{{display:block;font:inherit}}input{{width:100%;margin:.25rem 0 1rem}}
button{{margin-bottom:.5rem}}</style><h1>{title}</h1>{body}</html>"""


def page(title: str, body: str, status: int = 200, *, head: str = "") -> Response:
    """Return an HTML page from the HTML markup *title*, *body* and *head*."""
    return HTMLResponse(_PAGE.format(title=title, body=body, head=head), status, headers=HEADERS)


def message(text: str, status: int = 200, *, more: str = "") -> Response:
    """Return an HTML page with the plain *text*, and then the HTML markup *more*."""
    return page("Sign-in", f"<p>{escape(text)}</p>{more}", status)


def error_page(error: GatewayError, *, more: str = "") -> Response:
    """Return an HTML page with the error's message, and then the HTML markup *more*."""
    status = error.status if isinstance(error, RefusedError) else 400
    return message(str(error), status, more=more)


def link(url: str, text: str) -> str:
    """Return an HTML paragraph with one link."""
    return f'<p><a href="{escape(url)}">{escape(text)}</a></p>'
