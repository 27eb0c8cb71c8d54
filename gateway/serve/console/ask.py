"""Ask page: searches with explanations, comparison of settings, and calls of found tools."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain, repeat
from typing import Any, ClassVar
from urllib.parse import urlencode

import numpy as np

from gateway import errors, types
from gateway.discovery.approval import needs_approval
from gateway.discovery.render_results import by_kind
from gateway.discovery.token_counter import ModelView, model_view
from gateway.gateway import Gateway
from gateway.plugin_manager import own_plugins
from gateway.runtime.background_loop import in_thread
from gateway.search.explanation import reasons
from gateway.serve.api.problems import RefusedError
from gateway.serve.auth import ADMIN, CALL, check_right
from gateway.serve.console.forms import FormField, form_fields, read_form, with_faults
from gateway.serve.console.page import ConsoleOptions, PageView, Place, Redirect, Visit, page
from gateway.serve.guard import CONSOLE
from gateway.types import Entity, SearchResult

CALL_TIMEOUT_S = 50.0
"""Timeout of a call in seconds, shorter than the page's timeout, so that the page reports it."""
MAX_OFFERED = 200
ALL_KINDS = "all"
_HOST = types.Caller(scopes=frozenset({types.ALL_SCOPES}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings of a search. Empty fields select the defaults."""

    ranking: str = ""
    """A `RankingPolicy`. Empty: the gateway's strategy for tools, *hybrid* for other kinds."""
    limit: int | None = None
    context: str = ""
    user: str = ""
    tenant: str = ""
    scopes: str = ""

    @property
    def caller(self) -> types.Caller | None:
        """Caller to search as. None if user, tenant and scopes are empty."""
        if not (self.user or self.tenant or self.scopes):
            return None
        scopes = frozenset(self.scopes.split())
        return types.Caller(user=self.user, tenant=self.tenant, scopes=scopes)


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundRow:
    """A match or an entity added to the matches, with the reasons."""

    kind: str
    """``match``, ``prerequisite``, ``related`` or ``next_step``."""
    match: types.Match
    ranks: types.EvidenceRanks | None
    why: tuple[str, ...]
    callable: bool
    """True if the visitor may call the entity, given the scope `catalog:call`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchAnswer:
    """Results of one search."""

    mode: str
    rows: tuple[FoundRow, ...]
    filtered: tuple[types.FilteredEntity, ...]
    nearest: str
    unmatched: tuple[str, ...]
    notes: tuple[str, ...]
    eligible: int
    stages: Mapping[str, float]
    seconds: float
    cached: bool
    model: ModelView


@dataclass(frozen=True, slots=True, kw_only=True)
class AskData:
    """One query and its results, with one or two settings."""

    query: str
    kind: str
    server: str
    tags: str
    other: Settings
    kinds: tuple[str, ...]
    servers: tuple[str, ...]
    known_tags: tuple[str, ...]
    rankings: tuple[str, ...]
    answers: tuple[SearchAnswer, ...] = ()
    can_save: bool
    address: str
    """Query string of this page, for links back to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallData:
    """A tool, the form for its arguments, and the call's outcome."""

    id: str
    description: str
    fields: tuple[FormField, ...]
    confirm: str
    """Reason why the visitor must confirm the call. Empty if it needs no confirmation."""
    faults: tuple[str, ...] = ()
    error: str = ""
    result: types.InvokeResult | None = None
    seconds: float | None = None


class AskPage:
    """Page that searches the catalog and calls tools."""

    place: ClassVar = Place(title="Ask", path="/ask")

    def __init__(self, gateway: Gateway, options: ConsoleOptions) -> None:
        self._gateway = gateway
        self._options = options

    @page("GET", "/ask")
    async def show(self, visit: Visit) -> PageView:
        """Search for the address's ``q``, and again if it contains other settings."""
        snapshot, fields = await self._gateway.snapshot(), visit.query
        eligibility, visible = snapshot.eligibility, snapshot.open_to(visit.caller.filters())
        data = AskData(
            query=fields.get("q", ""),
            kind=fields.get("kind") or "tool",
            server=fields.get("server", ""),
            tags=fields.get("tags", ""),
            other=_settings(fields),
            kinds=tuple(sorted({"tool", *eligibility.kinds(np.flatnonzero(visible))})),
            servers=tuple(sorted(eligibility.servers(visible)))[:MAX_OFFERED],
            known_tags=tuple(eligibility.tags(visible))[:MAX_OFFERED],
            rankings=self._gateway.searches.rankings,
            can_save=self._options.requests is not None
            and visit.can(ADMIN)
            and "quality" in own_plugins(),
            address=urlencode(fields.multi_items()),
        )
        columns = dict.fromkeys((Settings(), data.other))
        work = (self._answer(visit.caller, data, settings) for settings in columns)
        data = replace(data, answers=tuple(await asyncio.gather(*work)))
        return PageView(template="ask.html", title="Ask", data=data)

    async def _answer(
        self, visitor: types.Caller, data: AskData, settings: Settings
    ) -> SearchAnswer:
        other = settings.caller
        if other is not None:
            check_right(visitor, ADMIN)
        ranking: Any = settings.ranking or self._gateway.searches.usual_ranking(data.kind)
        began = time.perf_counter()
        result = await self._gateway.search(
            data.query,
            limit=settings.limit,
            context_summary=settings.context,
            filters=_filters(data),
            ranking=ranking,
            caller=other or visitor,
            # Administrators, who alone search as another caller, may see what it cannot.
            explain=_HOST if other else True,
            task=None,
        )
        seconds = time.perf_counter() - began
        snapshot = await self._gateway.snapshot()
        mask, places = snapshot.mask(visitor.filters()), snapshot.eligibility.by_id
        result_ids = {match.id for match in result.shown}
        tools = {key for key in result_ids if key in places and mask[places[key]]}
        return SearchAnswer(
            mode=result.mode,
            rows=tuple(_rows(result, tools)),
            filtered=result.filtered,
            nearest=result.nearest.id if result.nearest else "",
            unmatched=result.unmatched,
            notes=tuple(
                f"{types.CODES[match.code]} {match.detail}" for match in result.diagnostics
            ),
            eligible=result.counts.eligible,
            stages=result.stages,
            seconds=seconds,
            cached=result.cached,
            model=await model_view(self._gateway, result),
        )

    @page("POST", "/ask/save", right=ADMIN)
    async def save(self, visit: Visit) -> Redirect:
        """Save the query as a test request for the selected tool."""
        from gateway.plugins.quality.requests import EvalRequest, save_request  # noqa: PLC0415  (it may not be installed)

        path, text = self._options.requests, visit.form.get("q", "")
        if path is None:
            raise RefusedError(
                404, "no_requests", "this console was started without a file of test requests"
            )
        tool = await self._tool(visit, visit.form.get("id", ""))
        request = EvalRequest(text=text, wanted=((tool.id,),))
        added = await in_thread(save_request, path, request)
        note = f"saved for {tool.id}" if added else f"it was already saved for {tool.id}"
        return Redirect(to=f"{CONSOLE}/ask?{visit.form.get('back', '')}", note=note)

    @page("GET", "/call/{id:path}", right=CALL)
    async def form(self, visit: Visit) -> PageView:
        """Show the form of a tool's arguments."""
        tool = await self._tool(visit, visit.path["id"])
        return _call_page(await self._call_data(visit, tool))

    @page("POST", "/call/{id:path}", right=CALL)
    async def call(self, visit: Visit) -> PageView:
        """Call a tool with the submitted arguments."""
        tool = await self._tool(visit, visit.path["id"])
        arguments, fields = read_form(form_fields(tool.definition.input_schema), visit.form)
        data = replace(await self._call_data(visit, tool), fields=fields)
        if data.confirm and "confirm" not in visit.form:
            return _call_page(replace(data, faults=("Confirm the call.",)))
        if any(field.error for field in fields):
            return _call_page(replace(data, faults=("See below.",)))
        timeout_error = errors.GatewayError(
            f"no answer within {CALL_TIMEOUT_S:g} s; the tool may have run"
        )
        began = time.perf_counter()
        approved = "confirm" in visit.form
        work = self._gateway.invoke(tool.id, arguments, caller=visit.caller, approved=approved)
        result = await errors.attempt_within(work, CALL_TIMEOUT_S, timeout_error)
        data = replace(data, seconds=time.perf_counter() - began)
        if not isinstance(result, errors.Failed):
            return _call_page(replace(data, result=result))
        error = result.error
        if isinstance(error, errors.InvalidArgumentsError):
            fields, others = with_faults(fields, error.faults)
            return _call_page(replace(data, fields=fields, faults=others or ("See below.",)))
        reason = (
            str(error)
            if isinstance(error, errors.GatewayError)
            else "internal error of the gateway"
        )
        if isinstance(error, errors.UpstreamError) and not error.sent:
            reason += "; nothing was sent"
        return _call_page(replace(data, error=reason))

    async def _tool(self, visit: Visit, key: str) -> Entity:
        try:
            return (await self._gateway.calls.find(key, visit.caller, {})).entity
        except errors.UnknownToolError as error:
            raise RefusedError(404, "unknown_tool", str(error)) from None

    async def _call_data(self, visit: Visit, tool: Entity) -> CallData:
        decision = (await self._gateway.snapshot()).visibility.decide(tool, visit.caller)
        return _call_data(tool, decision.rule if decision.action == "ask" else "")


def _filters(data: AskData) -> types.Filters:
    return types.Filters(
        kinds=frozenset(data.kinds if data.kind == ALL_KINDS else {data.kind}),
        tags=frozenset(filter(None, map(str.strip, data.tags.split(",")))),
        servers=frozenset(filter(None, {data.server})),
    )


def _settings(fields: Mapping[str, str]) -> Settings:
    limit, names = fields.get("limit", ""), ("ranking", "context", "user", "tenant", "scopes")
    texts = {name: fields.get(name, "").strip() for name in names}
    return Settings(limit=int(limit[:4]) if limit.isdecimal() else None, **texts)


def _rows(result: SearchResult, tools: Container[str]) -> Iterator[FoundRow]:
    ranks = chain(result.ranks, repeat(None))
    for (kind, match), places in zip(by_kind(result), ranks, strict=False):
        yield FoundRow(
            kind=kind, match=match, ranks=places, why=reasons(match), callable=match.id in tools
        )


def _call_data(tool: Entity, rule: str) -> CallData:
    confirm = f"The policy {rule!r} requires confirmation." if rule else ""
    if needs_approval(tool, "not_read_only") or tool.suspicious:
        confirm = "The tool is not known to be read-only, so it may change data."
    if tool.hints.destructive:
        confirm = "The tool may destroy data."
    fields = form_fields(tool.definition.input_schema)
    return CallData(id=tool.id, description=tool.description, fields=fields, confirm=confirm)


def _call_page(data: CallData) -> PageView:
    status, title = 422 if data.faults else 200, f"Call {data.id:.120}"
    return PageView(template="call.html", title=title, data=data, status=status)
