"""Small pages for people that need no template and no script."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from starlette.responses import HTMLResponse, Response

from gateway.errors import GatewayError
from gateway.serve.api.problems import RefusedError

HEADERS: Mapping[str, str] = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'"
    ),
    # With "no-referrer" browsers send the form with ``Origin: null``, which is foreign.
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}
_PAGE = """<!doctype html><html lang="en"><meta charset="utf-8">
<meta name="viewport" content="width=device-width">{head}<title>{title}</title>
<style>body{{font:1rem/1.5 sans-serif;max-width:34rem;margin:3rem auto;padding:0 1rem}}
label,input,button{{display:block;font:inherit}}input{{width:100%;margin:.25rem 0 1rem}}
button{{margin-bottom:.5rem}}</style><h1>{title}</h1>{body}</html>"""


def page(title: str, body: str, status: int = 200, *, head: str = "") -> Response:
    """Return a page; all three texts are markup."""
    return HTMLResponse(_PAGE.format(title=title, body=body, head=head), status, headers=HEADERS)


def message(text: str, status: int = 200, *, more: str = "") -> Response:
    """Return a page that says *text*.

    Args:
        text: Shown as it is.
        status: Of the answer.
        more: Markup that follows.
    """
    return page("Sign-in", f"<p>{escape(text)}</p>{more}", status)


def refused(error: GatewayError, *, more: str = "") -> Response:
    """Return a page that says why something was refused, with *more* markup."""
    status = error.status if isinstance(error, RefusedError) else 400
    return message(str(error), status, more=more)


def link(url: str, text: str) -> str:
    """Return the markup of a paragraph with one link."""
    return f'<p><a href="{escape(url)}">{escape(text)}</a></p>'
