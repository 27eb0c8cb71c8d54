"""The conversations of the demo: what its user asks, how it went, what it cost."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from openai import OpenAIError
from openai.types.chat import ChatCompletionMessageParam

from gateway.chat.accounting import Accounting, accounting_of
from gateway.chat.client import AutoDiscoveryClient
from gateway.chat.events import Called, Event, Requested, Searched
from gateway.cli.demo.stage import Stage
from gateway.errors import GatewayError


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


_INSTRUCTIONS = (
    "You are the assistant of a small office. Use tools; never pretend to have used one. "
    'Keep files in the folder "{}" and give tools absolute paths. '
    "Answer in one sentence, in the user's language."
)
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


def converse(stage: Stage, request: Request) -> tuple[dict[str, Any], Accounting]:
    """Hold one conversation; return what happened, and what it cost.

    It is *ok* if the right tool was really called.
    """
    events: list[Event] = []
    client = AutoDiscoveryClient(stage.openai, stage.gateway.gateway, observer=events.append)
    messages: list[ChatCompletionMessageParam] = [
        {"role": "system", "content": _INSTRUCTIONS.format(stage.folder)},
        {"role": "user", "content": request.text},
    ]
    faults, answer, cost = [], "", None
    started = time.perf_counter()
    try:
        reply = client.chat.completions.create(model=stage.model, messages=messages)
        answer, cost = reply.choices[0].message.content or "", accounting_of(reply)
    except (GatewayError, OpenAIError) as error:
        faults.append(f"the conversation ended with {type(error).__name__}: {error}")
    calls = [_call(event) for event in events if isinstance(event, Called)]
    if not any(call["tool_id"] == request.expected_tool and not call["is_error"] for call in calls):
        faults.append(f"{request.expected_tool} was not called with success")
    if request.expected_file and not (stage.folder / request.expected_file).is_file():
        faults.append(f"the file {request.expected_file} does not exist")
    data = {
        "title": request.title,
        "language": request.language,
        "request": request.text,
        "searches": [_search(event) for event in events if isinstance(event, Searched)],
        "turns": [_turn(event) for event in events if isinstance(event, Requested)],
        "calls": calls,
        "answer": answer,
        "expected_tool": request.expected_tool,
        "expected_file": request.expected_file or None,
        "duration_s": time.perf_counter() - started,
        "ok": not faults,
        "faults": faults,
    }
    return data, cost or Accounting()


def _search(event: Searched) -> dict[str, object]:
    return {"queries": event.queries, "result": event.result}


def _turn(event: Requested) -> dict[str, object]:
    return {
        "turn": event.turn,
        "visible_tools": event.tools,
        "found_tools": event.proxies,
        "definition_tokens_estimated": event.definition_tokens,
    }


def _call(event: Called) -> dict[str, object]:
    result = event.result
    return {
        "tool": event.tool,
        "tool_id": result.tool_id if result else None,
        "arguments": event.arguments,
        "is_error": result.is_error if result else True,
        "text": result.text if result else "",
        "error": event.error,
    }


def total_cost(
    stage: Stage, searches: Sequence[Mapping[str, Any]], cost: Accounting
) -> dict[str, object]:
    """Return the cost of all conversations; tokens of definitions are estimates.

    Their *searches* are repeated to time the caches.
    """
    started = time.perf_counter()
    repeated = [stage.gateway.search(queries=search["queries"]) for search in searches]
    repeated_s = time.perf_counter() - started
    seconds: defaultdict[str, float] = defaultdict(float)
    for search in searches:
        for name, duration_s in search["result"].stages.items():
            seconds[name] += duration_s
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
        "seconds": seconds,
        "repeated_s": repeated_s,
        "cache_hits": sum(result.cached for result in repeated),
        "cache_lookups": len(repeated),
        "embedded_texts": stage.report.embedded_texts,
        "vectors": stage.report.vectors,
    }
