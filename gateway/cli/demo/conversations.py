"""The conversations of the demo: what its user asks, how it went, what it cost."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from openai import OpenAIError
from openai.types.chat import ChatCompletionMessageParam

from gateway.chat.accounting import Accounting
from gateway.chat.client import AutoDiscoveryClient
from gateway.chat.events import Called, Event, Replied, Requested, Searched
from gateway.cli.demo.stage import Stage
from gateway.discovery.proxies import proxy
from gateway.errors import GatewayError
from gateway.runtime.text import json_tokens
from gateway.sync import SyncGateway

E = TypeVar("E")


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One conversation of the demo."""

    title: str
    language: str
    text: str
    expected_tool: str
    """The id of the tool that must be called. The model does not see it."""
    expected_file: str = ""
    """The name of a file that must exist afterwards; empty if none."""


REQUESTS = (
    Request(
        title="English",
        language="en",
        text="Create an Excel workbook called quarterly-report.xlsx.",
        expected_tool="excel/create_workbook",
        expected_file="quarterly-report.xlsx",
    ),
    Request(
        title="German",
        language="de",
        text="Wie spät ist es gerade in Tokio? Die Zeitzone heißt Asia/Tokyo.",
        expected_tool="time/get_current_time",
    ),
    Request(
        title="Full of typos",
        language="en",
        text="plese creat a new Wrod documnt, name it meeting-notes.docx thx",
        expected_tool="word/create_document",
        expected_file="meeting-notes.docx",
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One conversation as it went."""

    request: Request
    events: tuple[Event, ...]
    answer: str
    duration_s: float
    faults: tuple[str, ...]
    """What should have happened and did not; empty if all is well."""

    def events_of(self, kind: type[E]) -> tuple[E, ...]:
        """Return the events of one kind, in order."""
        return tuple(event for event in self.events if isinstance(event, kind))


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """The cost of all conversations. Tokens of definitions are estimates."""

    tools: int
    servers: int
    model_requests: int
    all_schema_tokens: int
    """If every request had sent every tool's schema."""
    sent_schema_tokens: int
    prompt_tokens: int
    """As the model's server counted them, messages included."""
    completion_tokens: int
    cached_tokens: int
    """Those of the prompt, as the server reported them."""
    prefix_stability: float
    """The share of the later requests' bytes that a prompt cache could hold, 0 to 1."""
    seconds: dict[str, float]
    """By stage."""
    repeated_s: float
    """How long the same searches took a second time, answered by the caches."""
    cache_hits: int
    cache_lookups: int
    embedded_texts: int
    """Texts that were embedded in this run; the others came from the store."""
    vectors: int


def converse(stage: Stage, request: Request) -> Outcome:
    """Hold one conversation and check whether the right tool was really called."""
    events: list[Event] = []
    client = AutoDiscoveryClient(stage.openai, stage.gateway, observer=events.append)
    messages: list[ChatCompletionMessageParam] = [
        {"role": "system", "content": _instructions(stage.folder)},
        {"role": "user", "content": request.text},
    ]
    faults: list[str] = []
    answer = ""
    started = time.perf_counter()
    try:
        reply = client.chat.completions.create(model=stage.model, messages=messages)
        answer = reply.choices[0].message.content or ""
    except (GatewayError, OpenAIError) as error:
        faults.append(f"the conversation ended with {type(error).__name__}: {error}")
    faults += _find_faults(request, events, stage.folder)
    return Outcome(
        request=request,
        events=tuple(events),
        answer=answer,
        duration_s=time.perf_counter() - started,
        faults=tuple(faults),
    )


def _instructions(folder: Path) -> str:
    return (
        "You are the assistant of a small office. Use tools; never pretend to have used one. "
        f'Keep files in the folder "{folder}" and give tools absolute paths. '
        "Answer in one sentence, in the user's language."
    )


def _find_faults(request: Request, events: Sequence[Event], folder: Path) -> list[str]:
    successes = {
        event.result.tool_id
        for event in events
        if isinstance(event, Called) and event.result and not event.result.is_error
    }
    faults = []
    if request.expected_tool not in successes:
        faults.append(f"{request.expected_tool} was not called with success")
    if request.expected_file and not (folder / request.expected_file).is_file():
        faults.append(f"the file {request.expected_file} does not exist")
    return faults


def total_cost(stage: Stage, outcomes: Sequence[Outcome]) -> Totals:
    """Return the cost of all conversations; repeats their searches to time the caches."""
    options = stage.gateway.options.discovery
    tokens = json_tokens([proxy(entity, options) for entity in stage.entities])
    requests = [event for outcome in outcomes for event in outcome.events_of(Requested)]
    replies = [event for outcome in outcomes for event in outcome.events_of(Replied)]
    repeated_s = _repeat_searches(stage, outcomes)
    metrics = stage.telemetry.metrics()
    accounting = sum((event.accounting for event in replies), Accounting(calls=0))
    return Totals(
        tools=len(stage.entities),
        servers=len({entity.server for entity in stage.entities}),
        model_requests=len(requests),
        all_schema_tokens=tokens * len(requests),
        sent_schema_tokens=sum(event.definition_tokens for event in requests),
        prompt_tokens=sum(event.prompt_tokens for event in replies),
        completion_tokens=sum(event.completion_tokens for event in replies),
        cached_tokens=sum(event.accounting.cached_tokens for event in replies),
        prefix_stability=accounting.prefix_stability,
        seconds=metrics.seconds,
        repeated_s=repeated_s,
        cache_hits=metrics.hits,
        cache_lookups=metrics.lookups,
        embedded_texts=stage.report.embedded_texts,
        vectors=stage.report.vectors,
    )


def _repeat_searches(stage: Stage, outcomes: Sequence[Outcome]) -> float:
    sync = SyncGateway(stage.gateway)
    started = time.perf_counter()
    for outcome in outcomes:
        for event in outcome.events_of(Searched):
            sync.search(queries=event.queries)
    return time.perf_counter() - started
