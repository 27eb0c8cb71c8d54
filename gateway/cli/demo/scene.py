"""What the demo plays in: a gateway over real servers, a model, a folder; all ended afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from openai import DefaultHttpxClient, OpenAI

from gateway.cli.demo.meters import Meters
from gateway.cli.demo.policy import policy
from gateway.cli.demo.servers import servers
from gateway.cli.demo.tools import FUNCTIONS
from gateway.cli.demo.trace import Spans
from gateway.cli.progress import bars
from gateway.gateway import Gateway
from gateway.options import Options, UpstreamOptions
from gateway.options.environment import environment, variables
from gateway.sync import SyncGateway
from gateway.testing import ScriptedModel
from gateway.types import Entity, IndexReport

_KEY = "OPENAI_API_KEY"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """All that a conversation needs."""

    gateway: Gateway
    openai: OpenAI
    model: str
    scripted: bool
    """True if no real model was configured and a scripted one answers on the loopback."""
    folder: Path
    """Where the servers put files; gone after the demo."""
    entities: tuple[Entity, ...]
    report: IndexReport
    meters: Meters
    spans: Spans


_PATIENT = Options(upstream=UpstreamOptions(connect_timeout_s=120, first_listing_s=120))
"""Three Python programs start at once, for the first time, on whatever machine this is."""


@contextmanager
def scene() -> Iterator[Scene]:
    """Start everything.

    Raises:
        ConfigError: If the demo's servers or the embedded model are not installed.
    """
    told = environment()
    meters, spans = Meters(), Spans()
    with ExitStack() as stack:
        folder = stack.enter_context(TemporaryDirectory(prefix="gateway-demo-"))
        with bars() as progress:
            gateway = Gateway(
                strategy="auto",
                embedder="local",
                options=_PATIENT,
                progress=progress,
                tracer_provider=spans.provider,
                meter_provider=meters.provider,
            )
            twin = stack.enter_context(SyncGateway(gateway))
            _register(gateway)
            report = twin.report()
        openai = _scripted(stack) if not told.openai_configured else _real()
        stack.enter_context(openai)
        yield Scene(
            gateway=gateway,
            openai=openai,
            model=told.openai_model if told.openai_configured else "scripted",
            scripted=not told.openai_configured,
            folder=Path(folder).resolve(),
            entities=twin.list_tools(),
            report=report,
            meters=meters,
            spans=spans,
        )


def _register(gateway: Gateway) -> None:
    for name, server in servers().items():
        gateway.add_server(name, command=server.command, args=server.args)
    for function in FUNCTIONS:
        gateway.add_tool(function)


def _scripted(stack: ExitStack) -> OpenAI:
    served = stack.enter_context(ScriptedModel(policy))
    # A proxy of the environment must not stand before the loopback.
    direct = DefaultHttpxClient(trust_env=False)
    return OpenAI(base_url=served.base_url, api_key="unused", http_client=direct)


def _real() -> OpenAI:
    # A server of one's own often wants no key, but the client does.
    return OpenAI(api_key=variables(frozenset({_KEY})).get(_KEY) or "unused")
