"""Attention page: open issues, most urgent first, with actions."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar
from urllib.parse import urlencode

from gateway.attention.issues import KINDS, Issue
from gateway.errors import Failed, GatewayError, attempt
from gateway.gateway import Gateway
from gateway.serve.api.problems import RefusedError
from gateway.serve.auth import ADMIN, WRITE, check_right
from gateway.serve.console.page import ConsoleOptions, PageView, Place, Redirect, Visit, clip, page
from gateway.serve.guard import CONSOLE

MAX_ISSUES = 100
_NOTE_CHARS = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionData:
    """The open issues that the page shows."""

    at: float
    """Unix time at which the issues were collected, in seconds."""
    total: int
    counts: Mapping[str, int]
    """Number of issues, keyed by kind, most urgent kind first."""
    kind: str
    issues: tuple[Issue, ...]
    more: int
    has_commands: bool
    """True if the gateway has a configuration file, which the issues' commands need."""


class AttentionPage:
    """Page of open issues, which name all servers and tools, regardless of scopes."""

    place: ClassVar = Place(title="Attention", path="/attention", right=ADMIN)

    def __init__(self, gateway: Gateway, options: ConsoleOptions) -> None:
        self._gateway = gateway
        self._options = options
        self._actions: Mapping[str, Callable[[Visit, str], Awaitable[str]]] = {
            "approve": self._approve,
            "accept": self._accept,
            "disable": self._disable,
            "retry": self._retry,
            "sign_in": self._sign_in,
            "refresh": self._refresh,
            "reload": self._reload,
        }

    @page("GET", "/attention", right=ADMIN)
    async def show(self, visit: Visit) -> PageView:
        """Show all issues, or those of the address's ``kind``."""
        issues = await self._gateway.issues(reports=self._options.reports)
        counts, kind = Counter(issue.kind for issue in issues), visit.query.get("kind", "")
        chosen = [issue for issue in issues if kind in {"", issue.kind}]
        data = AttentionData(
            at=time.time(),
            total=len(issues),
            counts={name: counts[name] for name in KINDS if counts[name]},
            kind=kind,
            issues=tuple(chosen[:MAX_ISSUES]),
            more=max(len(chosen) - MAX_ISSUES, 0),
            has_commands=self._options.config is not None,
        )
        return PageView(template="attention.html", title="Attention", data=data)

    @page("POST", "/attention/{action}", right=ADMIN)
    async def act(self, visit: Visit) -> Redirect:
        """Run the action of an issue. If it fails, the next page shows the reason.

        Raises:
            RefusedError: 404 for an unknown action, 403 if the caller may not change entities.
        """
        act = self._actions.get(visit.path["action"])
        if act is None:
            raise RefusedError(404, "unknown_page", "unknown action")
        if visit.path["action"] == "disable":
            check_right(visit.caller, WRITE)
        ended = await attempt(act(visit, visit.form.get("id", "")))
        if isinstance(ended, Failed) and not isinstance(ended.error, GatewayError):
            raise ended.error
        note = f"Not done: {ended.reason}" if isinstance(ended, Failed) else ended
        kind = visit.form.get("kind", "")
        query = f"?{urlencode({'kind': kind})}" if kind else ""
        return Redirect(to=f"{CONSOLE}/attention{query}", note=clip(note, _NOTE_CHARS))

    async def _approve(self, visit: Visit, key: str) -> str:
        await self._gateway.approve(key, digest=visit.form.get("digest", ""))
        return f"Approved {key}. Searches now use its current definition."

    async def _accept(self, _visit: Visit, key: str) -> str:
        await self._gateway.accept(key)
        return f"Accepted: {key}."

    async def _disable(self, _visit: Visit, key: str) -> str:
        await self._gateway.disable(key)
        return f"Disabled {key}. It can no longer be found or called."

    async def _retry(self, _visit: Visit, key: str) -> str:
        await self._gateway.retry(key)
        return f"{key} answers, and its listing is up to date."

    async def _sign_in(self, _visit: Visit, key: str) -> str:
        address = await self._gateway.sign_in(key)
        return (
            f"Open the sign-in link of {key} below."
            if address
            else f"{key} does not require a sign-in."
        )

    async def _refresh(self, _visit: Visit, _key: str) -> str:
        await self._gateway.refresh()
        return "Every server was listed again, and the index was built."

    async def _reload(self, _visit: Visit, _key: str) -> str:
        await self._gateway.reload()
        return "The configuration was read again."
