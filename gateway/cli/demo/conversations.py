"""The conversations of the demo: what its user asks, how it went, what it cost."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from openai import OpenAIError
from openai.types.chat import ChatCompletionMessageParam

from gateway.chat.accounting import Accounting, accounting_of
from gateway.chat.client import AutoDiscoveryClient
from gateway.chat.events import Called, Event, Searched
from gateway.cli.demo.stage import Stage
from gateway.errors import GatewayError

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
    accounting: Accounting

    def events_of(self, kind: type[E]) -> tuple[E, ...]:
        """Return the events of one kind, in order."""
        return tuple(event for event in self.events if isinstance(event, kind))


def converse(stage: Stage, request: Request) -> Outcome:
    """Hold one conversation and check whether the right tool was really called."""
    events: list[Event] = []
    client = AutoDiscoveryClient(stage.openai, stage.gateway.gateway, observer=events.append)
    instructions = (
        "You are the assistant of a small office. Use tools; never pretend to have used one. "
        f'Keep files in the folder "{stage.folder}" and give tools absolute paths. '
        "Answer in one sentence, in the user's language."
    )
    messages: list[ChatCompletionMessageParam] = [
        {"role": "system", "content": instructions},
        {"role": "user", "content": request.text},
    ]
    faults, answer, accounting = [], "", None
    started = time.perf_counter()
    try:
        reply = client.chat.completions.create(model=stage.model, messages=messages)
        answer, accounting = reply.choices[0].message.content or "", accounting_of(reply)
    except (GatewayError, OpenAIError) as error:
        faults.append(f"the conversation ended with {type(error).__name__}: {error}")
    return Outcome(
        request=request,
        events=tuple(events),
        answer=answer,
        duration_s=time.perf_counter() - started,
        faults=(*faults, *_find_faults(request, events, stage.folder)),
        accounting=accounting or Accounting(),
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


def total_cost(stage: Stage, outcomes: Sequence[Outcome]) -> dict[str, object]:
    """Return the cost of all conversations; tokens of definitions are estimates.

    Their searches are repeated to time the caches.
    """
    searches = [event for outcome in outcomes for event in outcome.events_of(Searched)]
    names = {name for event in searches for name in event.result.stages}
    started = time.perf_counter()
    repeated = [stage.gateway.search(queries=event.queries) for event in searches]
    repeated_s = time.perf_counter() - started
    cost = sum((outcome.accounting for outcome in outcomes), Accounting(calls=0))
    return {
        "tools": stage.report.tools,
        "servers": len({tool.server for tool in stage.gateway.list_tools()}),
        "model_requests": cost.turns,
        "all_schema_tokens": cost.catalog_tokens,
        "sent_schema_tokens": cost.definition_tokens,
        "prompt_tokens": cost.prompt_tokens,
        "completion_tokens": cost.completion_tokens,
        "cached_tokens": cost.cached_tokens,
        "prefix_stability": cost.prefix_stability,
        "seconds": {
            name: sum(event.result.stages.get(name, 0.0) for event in searches)
            for name in sorted(names)
        },
        "repeated_s": repeated_s,
        "cache_hits": sum(result.cached for result in repeated),
        "cache_lookups": len(repeated),
        "embedded_texts": stage.report.embedded_texts,
        "vectors": stage.report.vectors,
    }
