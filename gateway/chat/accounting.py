from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import TypeAlias

from pydantic import BaseModel

from gateway.discovery.call_handler import ToolAnswer
from gateway.errors import LoopError
from gateway.runtime.model_endpoint import TokenUsage
from gateway.types import InvokeResult, JsonObject, SearchResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Accounting:
    """Counts of requests, calls and tokens of one client call; `+` adds up several calls."""

    calls: int = 1
    turns: int = 0
    searches: int = 0
    tool_calls: int = 0
    """Number of calls of catalog tools."""
    errors: int = 0
    """Number of searches and tool calls that were answered with an error."""
    definition_tokens: int = 0
    """Estimated tokens of all tool definitions sent, including the host's own tools."""
    catalog_tokens: int = 0
    """Estimated tokens if every turn had contained every schema of the catalog."""
    prefix_bytes: int = 0
    """Number of bytes that each request shares with the beginning of the previous one, summed up.
    Tools count before messages, as services read them."""
    request_bytes: int = 0
    """Total bytes of all requests except the first."""
    prompt_tokens: int = 0
    """Input tokens of all turns, as reported by the service; likewise the next two fields."""
    completion_tokens: int = 0
    cached_tokens: int = 0
    turn_tokens: tuple[TokenUsage, ...] = ()
    """Token usage of each answered turn, in order, as reported by the service."""
    messages: tuple[Mapping[str, object], ...] = ()
    """Messages before the reply: the model's calls of gateway tools, and the answers. If you add
    them to your own messages, the next call keeps the found tools."""
    response_id: str = ""
    """Id of the service's final response (Responses API); "" for Chat Completions."""

    @property
    def definition_share(self) -> float:
        """Definition tokens divided by catalog tokens, >= 0; 0.0 for an empty catalog."""
        return self.definition_tokens / self.catalog_tokens if self.catalog_tokens else 0.0

    @property
    def prefix_stability(self) -> float:
        """Share of the request bytes that a prompt cache can reuse, 0 to 1; 1.0 for one request."""
        return self.prefix_bytes / self.request_bytes if self.request_bytes else 1.0

    def __add__(self, other: Accounting) -> Accounting:
        """Return the sum of counts and messages, with the last non-empty response id."""
        sums = {
            name: getattr(self, name) + getattr(other, name)
            for name in self.__slots__
            if name != "response_id"
        }
        return replace(self, **sums, response_id=other.response_id or self.response_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Requested:
    """Event: a request is sent to the model."""

    turn: int
    """Position of the request within the client call, counted from 1."""
    tools: tuple[str, ...]
    """Names of all tools in the request, in order: host's tools, meta-tools, proxies."""
    proxies: tuple[str, ...]
    """Names of the proxies (found tools) among *tools*."""
    definition_tokens: int
    """Estimated tokens of all tool definitions in the request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Searched:
    """Event: the model searched the catalog."""

    call_id: str
    queries: tuple[str, ...]
    result: SearchResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Called:
    """Event: the model called a tool of the gateway, other than a search."""

    call_id: str
    tool: str
    """Tool name as the model wrote it."""
    arguments: JsonObject
    result: InvokeResult | None = None
    """Result of the call; None if the call was not sent."""
    error: str = ""
    """Error text that the model received instead of a result, or ""."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replied:
    """Event: the model's reply is returned, because it calls no gateway tools."""

    turn: int
    text: str
    accounting: Accounting
    """Counts of the whole client call."""


Event: TypeAlias = Requested | Searched | Called | Replied
Observer: TypeAlias = Callable[[Event], None]
"""Callback for events, on the thread or task of the conversation. It must not block or raise."""


def attach(reply: BaseModel, accounting: Accounting) -> None:
    """Set ``reply.gateway``, which is not a model field and so never serialized."""
    reply.__dict__["gateway"] = accounting


def accounting_of(reply: object) -> Accounting | None:
    """Return ``reply.gateway``, or ``error.accounting`` of a `LoopError`; None if missing."""
    name = "accounting" if isinstance(reply, LoopError) else "gateway"
    accounting = getattr(reply, name, None)
    return accounting if isinstance(accounting, Accounting) else None


class UsageMeter:
    """Running counts of one client call."""

    def __init__(self) -> None:
        self.total = Accounting()
        """All counts except the token usage that the service reports."""
        self.failed_turns = 0
        """Number of consecutive turns, up to now, in which every call failed."""
        self.estimated_tokens = 0
        """Estimated tokens of the turns without a reported usage, for the limit ``max_tokens``."""
        self.usage: BaseModel | None = None
        self._parts: list[str] = []
        """Tools and messages of the last request, as JSON."""

    def record_request(
        self, parts: Iterable[object], *, definition_tokens: int, catalog_tokens: int
    ) -> None:
        """Count one request. *parts* are its tools, then its messages."""
        before, self._parts = self._parts, [json.dumps(part, default=str) for part in parts]
        pairs = zip(before, self._parts, strict=False)
        same = takewhile(lambda pair: pair[0] == pair[1], pairs)
        self.total += Accounting(
            calls=0,
            turns=1,
            definition_tokens=definition_tokens,
            catalog_tokens=catalog_tokens,
            prefix_bytes=sum(len(part) for part, _ in same),
            request_bytes=sum(map(len, self._parts)) if before else 0,
        )

    def record_reply(self, usage: BaseModel | None) -> None:
        """Count the token usage that the service reported with a reply, if any."""
        self.total += Accounting(calls=0, turn_tokens=(usage_of(usage),))
        if isinstance(usage, BaseModel):
            self.usage = usage if self.usage is None else add_usage(self.usage, usage)

    def record_answers(self, answers: Sequence[ToolAnswer]) -> None:
        """Count the searches, calls and errors of one turn."""
        failed = sum(answer.failed for answer in answers)
        searches = sum(answer.search is not None for answer in answers)
        tool_calls = len(answers) - searches
        self.total += Accounting(calls=0, searches=searches, tool_calls=tool_calls, errors=failed)
        self.failed_turns = self.failed_turns + 1 if failed == len(answers) else 0

    @property
    def tokens(self) -> int:
        """Tokens used so far, as reported by the service or estimated."""
        return total_tokens(self.usage) + self.estimated_tokens

    def accounting(
        self, messages: Sequence[Mapping[str, object]], *, response_id: str
    ) -> Accounting:
        """Return the counts of the client call so far."""
        usage = usage_of(self.usage)
        return replace(
            self.total,
            prompt_tokens=usage.input or 0,
            completion_tokens=usage.output or 0,
            cached_tokens=usage.cached or 0,
            messages=tuple(messages),
            response_id=response_id,
        )


def usage_of(usage: BaseModel | None) -> TokenUsage:
    """Convert a usage report of either wire format; unreported counts are None."""
    cached, reasoning = (
        next(filter(None, (getattr(usage, name, None) for name in names)), None)
        for names in (
            ("prompt_tokens_details", "input_tokens_details"),
            ("completion_tokens_details", "output_tokens_details"),
        )
    )
    return TokenUsage(
        input=_count(usage, "prompt_tokens", "input_tokens"),
        output=_count(usage, "completion_tokens", "output_tokens"),
        cached=_count(cached, "cached_tokens"),
        reasoning=_count(reasoning, "reasoning_tokens"),
    )


def total_tokens(usage: BaseModel | None) -> int:
    """Return the total of a usage report, or else the sum of input and output."""
    parts = usage_of(usage)
    return _count(usage, "total_tokens") or (parts.input or 0) + (parts.output or 0)


def add_usage(first: BaseModel, second: BaseModel) -> BaseModel:
    """Add two usage reports field by field, without losing fields.

    The sum is not validated, because many services omit fields that the SDK requires.
    """
    parts = (usage.model_dump(exclude_unset=True, warnings=False) for usage in (first, second))
    return type(second).model_construct(None, **_add_fields(*parts))


def _add_fields(first: dict[str, object], second: dict[str, object]) -> dict[str, object]:
    total = dict(first)
    for key, value in second.items():
        before = total.get(key)
        if isinstance(before, dict) and isinstance(value, dict):
            total[key] = _add_fields(before, value)
        elif isinstance(before, int | float) and isinstance(value, int | float):
            total[key] = before + value
        elif value is not None or key not in total:
            total[key] = value
    return total


def _count(usage: object, *names: str) -> int | None:
    values = (getattr(usage, name, None) for name in names)
    return next((value for value in values if isinstance(value, int)), None)


def event_of(answer: ToolAnswer) -> Event:
    """Return the event that the observer receives about *answer*."""
    if answer.search is not None:
        return Searched(call_id=answer.call.id, queries=answer.queries, result=answer.search)
    return Called(
        call_id=answer.call.id,
        tool=answer.tool,
        arguments=answer.arguments or {},
        result=answer.result,
        error=answer.error,
    )
