"""HTTP routes of the console.

The content security policy allows only resources from ``static``, and no inline scripts.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from pydantic import TypeAdapter
from starlette.datastructures import ImmutableMultiDict
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from gateway.errors import Failed, attempt
from gateway.gateway import Gateway
from gateway.plugin_manager import own_plugins
from gateway.runtime import VERSION
from gateway.runtime.text import visible_json
from gateway.serve import auth
from gateway.serve.account import local_path, sign_in_links, signed_out_address
from gateway.serve.api.problems import RefusedError, problem, refusal
from gateway.serve.api.requests import read_limited
from gateway.serve.console.access import FORM_FIELD, ConsoleSession, Sessions, check_form
from gateway.serve.console.page import (
    FILTERS,
    ConsoleOptions,
    PageRoute,
    PageView,
    Redirect,
    Visit,
    page_routes,
)
from gateway.serve.guard import CONSOLE
from gateway.serve.http import ROUTE
from gateway.types.caller import ACTOR

MAX_FORM_BYTES = 1024 * 1024
MAX_SIGN_IN_BYTES = 8 * 1024
"""Maximum size of the sign-in form, which anyone can send, in bytes."""
MAX_FORM_FIELDS = 2000
TIME_LIMIT_S = 60.0
_CYTOSCAPE_STYLE = "'sha256-pgvDUBa4IjFA2yuSJ2cqcyxmNYJMborsd0ORcRv9vw8='"
"""Hash of the one inline style that Cytoscape sets."""
HEADERS: Mapping[str, str] = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; connect-src 'self'; img-src 'self' data:;"
        f" style-src 'self' {_CYTOSCAPE_STYLE};"
        " form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    # A stricter policy would remove the origin from forms.
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}
_STATIC = Path(__file__).parent / "static"
_SIGN_IN = f"{CONSOLE}/sign-in"

_PAGES: Mapping[str, tuple[str, ...]] = {
    "ask.AskPage": (),
    "attention.AttentionPage": (),
    "findability.FindabilityPage": ("quality", "usage"),
    "catalog.CatalogPage": ("manifests", "usage"),
    "graph.GraphPage": ("graph_tools",),
    "activity.ActivityPage": (),
}
"""Page classes in the order of the navigation, and the plugins they need."""


def _load_pages() -> Iterator[Any]:
    for path, needed in _PAGES.items():
        if own_plugins().issuperset(needed):
            module, _, name = path.partition(".")
            yield getattr(import_module(f"gateway.serve.console.{module}"), name)


PAGES = tuple(_load_pages())
"""Page classes whose plugins are installed. The console opens with the first."""
PLACES = tuple(page.place for page in PAGES)


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorData:
    """Content of an error page."""

    status: int
    code: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SignInData:
    """Content of the sign-in page."""

    next: str
    needs_launch_token: bool
    providers: Sequence[tuple[str, str]] = ()
    """Sign-in address and name of each identity provider."""


def console_routes(
    gateway: Gateway, options: ConsoleOptions, sessions: Sessions
) -> list[BaseRoute]:
    """Return the routes below `CONSOLE`, for an application behind the guard.

    The gateway is not closed.
    """
    console = _Console(sessions)
    pages = [page(gateway, options) for page in PAGES]
    by_path: dict[str, dict[str, PageRoute]] = {}
    for route in (route for page in pages for route in page_routes(page)):
        by_path.setdefault(route.path, {})[route.method] = route
    routes: list[BaseRoute] = [
        Route(CONSOLE, console.open, methods=["GET"]),
        Route(f"{CONSOLE}/", console.open, methods=["GET"]),
        Route(_SIGN_IN, console.sign_in, methods=["GET", "POST"]),
        Route(f"{CONSOLE}/sign-out", console.sign_out, methods=["POST"]),
        Mount(f"{CONSOLE}/static", StaticFiles(directory=_STATIC)),
    ]
    for path, by_method in by_path.items():
        routes.append(Route(path, partial(console.answer, by_method), methods=[*by_method]))
    return [*routes, Route(f"{CONSOLE}/{{path:path}}", console.not_found, methods=["GET"])]


class _Console:
    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._templates = Environment(
            loader=PackageLoader("gateway.serve.console"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.filters |= FILTERS

    async def open(self, request: Request) -> Response:
        """Redirect to the first page, after a sign-in if the address contains the launch token.

        Any other token is ignored, because addresses are logged, and an attacker's link could sign
        a browser in as the attacker.
        """
        request.scope[ROUTE] = CONSOLE
        token = request.query_params.get("token", "")
        if not (token and self._sessions.launch_token):
            return RedirectResponse(CONSOLE + PLACES[0].path, 303, HEADERS)
        return await self._begin(request, token, CONSOLE + PLACES[0].path)

    async def sign_in(self, request: Request) -> Response:
        """Show the sign-in form, or sign in with its token."""
        request.scope[ROUTE] = _SIGN_IN
        to = local_path(request.query_params.get("next", ""))
        if request.method == "POST":
            form = await attempt(_read_form(request, MAX_SIGN_IN_BYTES))
            if isinstance(form, Failed):
                return self._show_error(request, None, refusal(form))
            return await self._begin(request, form.get("token", ""), to)
        needs = bool(self._sessions.launch_token)
        providers = tuple(sign_in_links(self._sessions, to))
        data = SignInData(next=to, needs_launch_token=needs, providers=providers)
        return self._show(
            request, None, PageView(template="sign_in.html", title="Sign in", data=data)
        )

    async def _begin(self, request: Request, token: str, to: str) -> Response:
        try:
            session = await self._sessions.begin(token)
        except RefusedError as error:
            return self._show_error(request, None, error)
        response = RedirectResponse(to, 303, HEADERS)
        self._sessions.set_cookie(response, request, session)
        return response

    async def sign_out(self, request: Request) -> Response:
        request.scope[ROUTE] = f"{CONSOLE}/sign-out"
        session = await self._sessions.find(request)
        if session is not None:
            form = await attempt(_read_checked(request, session))
            if isinstance(form, Failed):
                return self._show_error(request, session, refusal(form))
            self._sessions.end(session)
            if session.bearer.issuer in self._sessions.authenticator.sign_ins:
                return RedirectResponse(signed_out_address(session.bearer.issuer), 303, HEADERS)
        return RedirectResponse(_SIGN_IN, 303, HEADERS)

    async def not_found(self, request: Request) -> Response:
        request.scope[ROUTE] = f"{CONSOLE}/…"
        detail = "this address does not exist"
        return self._show_error(request, None, RefusedError(404, "unknown_page", detail))

    async def answer(self, routes: Mapping[str, PageRoute], request: Request) -> Response:
        """Answer a request. *routes* is keyed by HTTP method."""
        route = routes["GET" if request.method == "HEAD" else request.method]
        request.scope[ROUTE] = route.path
        try:
            session = await self._sessions.find(request)
        except RefusedError as error:
            return problem(error)
        if session is None:
            return _ask_to_sign_in(request)
        answer = await attempt(self._work(route, request, session))
        if isinstance(answer, Failed):
            return self._show_error(request, session, refusal(answer))
        return answer

    async def _work(self, route: PageRoute, request: Request, session: ConsoleSession) -> Response:
        auth.check_right(session.caller, route.right)
        ACTOR.set(session.caller)
        form: ImmutableMultiDict[str, str] = ImmutableMultiDict()
        if request.method == "POST":
            form = await _read_checked(request, session)
        visit = Visit(
            caller=session.caller,
            path=dict(request.path_params),
            query=request.query_params,
            form=form,
            session=session.key,
            address=f"{request.url.scheme}://{request.url.netloc}",
            needs_token=not self._sessions.launch_token,
        )
        async with asyncio.timeout(TIME_LIMIT_S):
            answer = await route.handler(visit)
        if isinstance(answer, Redirect):
            if answer.note:
                session.notes.append(answer.note)
            return RedirectResponse(answer.to, 303, HEADERS)
        return answer if isinstance(answer, Response) else self._show(request, session, answer)

    def _show_error(
        self, request: Request, session: ConsoleSession | None, error: RefusedError
    ) -> Response:
        if _wants_json(request):
            return problem(error)
        details = error.details
        data = ErrorData(status=error.status, code=details.code, detail=details.detail)
        view = PageView(template="error.html", title=details.title, data=data, status=error.status)
        return self._show(request, session, view)

    def _show(self, request: Request, session: ConsoleSession | None, view: PageView) -> Response:
        if _wants_json(request):
            value = TypeAdapter(type(view.data)).dump_python(view.data, mode="json")
            text = json.dumps(visible_json(value), ensure_ascii=False)
            return Response(text.encode(), view.status, HEADERS, "application/json")
        path = request.url.path
        caller = session.caller if session else None
        can = partial(_can, caller)
        html = self._templates.get_template(view.template).render(
            view=view.data,
            title=view.title,
            can=can,
            csrf_token=session.csrf if session else "",
            csrf_field=FORM_FIELD,
            notes=session.take_notes() if session else (),
            places=[place for place in PLACES if session and can(place.right)],
            here=path.removeprefix(CONSOLE),
            root=CONSOLE,
            json_url=_json_url(request),
            version=VERSION,
        )
        # Texts of upstream servers may contain lone surrogates.
        return Response(html.encode("utf-8", "replace"), view.status, HEADERS, "text/html")


def _ask_to_sign_in(request: Request) -> Response:
    if _wants_json(request):
        return problem(RefusedError(401, "signed_out", "sign in, or send a bearer token"))
    current = request.url.path + ("?" + request.url.query if request.url.query else "")
    to = current if request.method == "GET" else CONSOLE
    return RedirectResponse(f"{_SIGN_IN}?{urlencode({'next': to})}", 303, HEADERS)


def _can(caller: Any, right: str) -> bool:
    return caller is not None and (not right or caller.holds({right}))


def _wants_json(request: Request) -> bool:
    return request.query_params.get("format") == "json"


def _json_url(request: Request) -> str:
    query = [*request.query_params.multi_items(), ("format", "json")]
    return f"{quote(request.url.path)}?{urlencode(query)}"


async def _read_checked(request: Request, session: ConsoleSession) -> ImmutableMultiDict[str, str]:
    form = await _read_form(request)
    check_form(session, form.get(FORM_FIELD, ""))
    return form


async def _read_form(
    request: Request, max_bytes: int = MAX_FORM_BYTES
) -> ImmutableMultiDict[str, str]:
    """Return the fields of an URL-encoded form.

    Raises:
        RefusedError: 415 for another media type, 413 for a large form.
    """
    media = request.headers.get("content-type", "").partition(";")[0].strip().casefold()
    if media != "application/x-www-form-urlencoded":
        raise RefusedError(415, "not_a_form", "send the fields as a form")
    body = await read_limited(request, max_bytes, "a form")
    if body.count(b"&") >= MAX_FORM_FIELDS:
        raise RefusedError(413, "too_large", f"a form may have at most {MAX_FORM_FIELDS} fields")
    text = body.decode("utf-8", "replace")
    return ImmutableMultiDict(parse_qsl(text, keep_blank_values=True))
