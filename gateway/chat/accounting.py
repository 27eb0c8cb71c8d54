"""What one call of the wrapper does, event by event, and what it cost in all."""

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
    """What one call of the wrapper did, or several of them (`+`)."""

    calls: int = 1
    """How many calls of the wrapper."""
    turns: int = 0
    """Requests to the model."""
    searches: int = 0
    tool_calls: int = 0
    """Calls of tools of the catalog."""
    errors: int = 0
    """Searches and tool calls that were answered with an error."""
    definition_tokens: int = 0
    """Estimated tokens of all tool definitions sent, over all turns, the host's own included."""
    catalog_tokens: int = 0
    """Estimated tokens if every schema of the catalog had been sent with every turn."""
    prefix_bytes: int = 0
    """Bytes at the beginning that each request but the first shares with the one before: tools
    first, then messages, as services read them."""
    request_bytes: int = 0
    """All bytes of those requests."""
    prompt_tokens: int = 0
    """As the service reports them, over all turns; so are the next two."""
    completion_tokens: int = 0
    cached_tokens: int = 0
    turn_tokens: tuple[TokenUsage, ...] = ()
    """As the service reports them for each turn that it answered, in order."""
    messages: tuple[Mapping[str, object], ...] = ()
    """What the conversation gained before the reply: the model's calls of our tools, with answers.
    A host that puts them into its own messages, before the reply, keeps the found tools."""
    response_id: str = ""
    """In the Responses API: the response that the service would go on from."""

    @property
    def definition_share(self) -> float:
        """Tokens of definitions sent, as a share of all schemas, >= 0; 0.0 for an empty catalog."""
        return self.definition_tokens / self.catalog_tokens if self.catalog_tokens else 0.0

    @property
    def prefix_stability(self) -> float:
        """The share of the requests' bytes that a prompt cache could know, 0 to 1; 1.0 if there was
        only one request.
        """
        return self.prefix_bytes / self.request_bytes if self.request_bytes else 1.0

    def __add__(self, other: Accounting) -> Accounting:
        """Add what a later call did: its messages come after ours, its response is the last."""
        sums = {
            name: getattr(self, name) + getattr(other, name)
            for name in self.__slots__
            if name != "response_id"
        }
        return replace(self, **sums, response_id=other.response_id or self.response_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Requested:
    """The model is asked."""

    turn: int
    """Counts requests within one call of the wrapper, from 1."""
    tools: tuple[str, ...]
    """The names of all tools that it sees, in order: the host's, the meta-tools, the proxies."""
    proxies: tuple[str, ...]
    """Those of them that are found tools."""
    definition_tokens: int
    """Estimated tokens of all these definitions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Searched:
    """The model searched the catalog."""

    call_id: str
    queries: tuple[str, ...]
    result: SearchResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Called:
    """The model called a tool of the catalog."""

    call_id: str
    tool: str
    """The name as the model gave it."""
    arguments: JsonObject
    result: InvokeResult | None = None
    """None if nothing was sent."""
    error: str = ""
    """What the model was told instead of a result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replied:
    """The model's turn had no calls of our tools: it goes to the caller."""

    turn: int
    text: str
    accounting: Accounting
    """What the whole call did and cost."""


Event: TypeAlias = Requested | Searched | Called | Replied
Observer: TypeAlias = Callable[[Event], None]
"""Called with each event as it happens, on the thread or task that runs the conversation. Must not
block and must not raise."""


def attach(reply: BaseModel, accounting: Accounting) -> None:
    """Set ``reply.gateway``: no field, so it is never sent."""
    reply.__dict__["gateway"] = accounting


def accounting_of(reply: object) -> Accounting | None:
    """Return ``reply.gateway``, typed; None for a reply that did not come through the wrapper.

    Of a `LoopError` it is ``error.accounting``.
    """
    name = "accounting" if isinstance(reply, LoopError) else "gateway"
    accounting = getattr(reply, name, None)
    return accounting if isinstance(accounting, Accounting) else None


class UsageMeter:
    """The counts of one call, while it runs. Bytes are counted from the second request on."""

    def __init__(self) -> None:
        self.total = Accounting()
        """All but what the service reports."""
        self.failed_turns = 0
        """In a row, up to now."""
        self.estimated_tokens = 0
        """Of turns whose usage was not reported; for the budget alone."""
        self.usage: BaseModel | None = None
        self._parts: list[str] = []
        """The parts of the last request, as JSON."""

    def record_request(
        self, parts: Iterable[object], *, definition_tokens: int, catalog_tokens: int
    ) -> None:
        """Count one request; *parts* are its tools and then its messages."""
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
        """Count what a reply cost."""
        self.total += Accounting(calls=0, turn_tokens=(usage_of(usage),))
        if isinstance(usage, BaseModel):
            self.usage = usage if self.usage is None else add_usage(self.usage, usage)

    def record_answers(self, answers: Sequence[ToolAnswer]) -> None:
        """Count the calls of one turn."""
        failed = sum(answer.failed for answer in answers)
        searches = sum(answer.search is not None for answer in answers)
        tool_calls = len(answers) - searches
        self.total += Accounting(calls=0, searches=searches, tool_calls=tool_calls, errors=failed)
        self.failed_turns = self.failed_turns + 1 if failed == len(answers) else 0

    @property
    def tokens(self) -> int:
        """All tokens so far, as the service reports them; estimated where it does not."""
        return total_tokens(self.usage) + self.estimated_tokens

    def accounting(
        self, messages: Sequence[Mapping[str, object]], *, response_id: str
    ) -> Accounting:
        """Return the counts of the whole call."""
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
    """Return what a service reported, in either wire format."""
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
    """Return the reported total, else the sum of its parts; 0 without a report."""
    parts = usage_of(usage)
    return _count(usage, "total_tokens") or (parts.input or 0) + (parts.output or 0)


def add_usage(first: BaseModel, second: BaseModel) -> BaseModel:
    """Add two usages field by field, details too; a field that only one has stays.

    Many services leave out fields that the SDK requires, so the sum is built unchecked, as the SDK
    builds a reply.
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
    """Return *answer* as an event for the observer."""
    if answer.search is not None:
        return Searched(call_id=answer.call.id, queries=answer.queries, result=answer.search)
    return Called(
        call_id=answer.call.id,
        tool=answer.tool,
        arguments=answer.arguments or {},
        result=answer.result,
        error=answer.error,
    )
