"""Everything that the demo needs: a gateway over real servers, a model, a folder."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from openai import DefaultHttpxClient, OpenAI
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from gateway.cli.demo.scripted_model import policy
from gateway.cli.session import show_progress
from gateway.errors import ConfigError
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
            for name, (program, *args) in find_programs().items():
                gateway.add_server(name, command=program, args=args)
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


def find_programs(
    folder: Path = Path(sys.executable).parent, *, search_path: str | None = None
) -> dict[str, tuple[str, ...]]:
    """Return the program and the arguments of each of the demo's servers.

    Args:
        folder: Where pip puts programs; searched first.
        search_path: Where else; None is ``PATH``.

    Raises:
        ConfigError: A server is not installed.
    """
    found: dict[str, tuple[str, ...]] = {}
    for name, (program, *args) in _PROGRAMS.items():
        command = shutil.which(program, path=str(folder)) or shutil.which(program, path=search_path)
        if command is None:
            raise ConfigError(
                f'the demo\'s server {program!r} is not installed: python -m pip install ".[demo]"'
            )
        found[name] = (command, *args)
    return found


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
