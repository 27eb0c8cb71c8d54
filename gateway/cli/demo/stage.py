"""Everything that the demo needs: a gateway over real servers, a model, a folder."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from openai import DefaultHttpxClient, OpenAI

from gateway.cli.demo.functions import FUNCTIONS
from gateway.cli.demo.scripted_model import policy
from gateway.cli.demo.telemetry import DemoTelemetry
from gateway.cli.progress import show_progress
from gateway.errors import ConfigError
from gateway.gateway import Gateway
from gateway.mcp.servers import StdioServer
from gateway.options import Options, UpstreamOptions
from gateway.options.environment import environment, variables
from gateway.sync import SyncGateway
from gateway.testing import ScriptedModel
from gateway.types import Entity, IndexReport

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

    gateway: Gateway
    openai: OpenAI
    model: str
    is_scripted: bool
    """Whether a scripted model answers on the loopback, since no real one is configured."""
    folder: Path
    """Where the servers put files; deleted after the demo."""
    entities: tuple[Entity, ...]
    report: IndexReport
    telemetry: DemoTelemetry


@contextmanager
def open_stage() -> Iterator[Stage]:
    """Start everything, and stop it with the block.

    Raises:
        ConfigError: The demo's servers or the embedded model are not installed.
    """
    settings = environment()
    telemetry = DemoTelemetry()
    with ExitStack() as stack:
        folder = stack.enter_context(TemporaryDirectory(prefix="gateway-demo-"))
        with show_progress() as progress:
            gateway = Gateway(
                strategy="auto",
                embedder="local",
                options=_OPTIONS,
                progress=progress,
                tracer_provider=telemetry.tracer_provider,
                meter_provider=telemetry.meter_provider,
            )
            sync = stack.enter_context(SyncGateway(gateway))
            for name, server in find_servers().items():
                gateway.add_server(name, command=server.command, args=server.args)
            for function in FUNCTIONS:
                gateway.add_tool(function)
            report = sync.report()
        is_scripted = not settings.openai_configured
        yield Stage(
            gateway=gateway,
            openai=stack.enter_context(_openai_client(stack, is_scripted=is_scripted)),
            model="scripted" if is_scripted else settings.openai_model,
            is_scripted=is_scripted,
            folder=Path(folder).resolve(),
            entities=sync.list_tools(),
            report=report,
            telemetry=telemetry,
        )


def _openai_client(stack: ExitStack, *, is_scripted: bool) -> OpenAI:
    if not is_scripted:
        # A private server may need no key, but the client does.
        return OpenAI(api_key=variables(frozenset({_KEY})).get(_KEY) or "unused")
    model = stack.enter_context(ScriptedModel(policy))
    # A proxy of the environment must not be used for the loopback.
    direct = DefaultHttpxClient(trust_env=False)
    return OpenAI(base_url=model.base_url, api_key="unused", http_client=direct)


def find_servers(
    folder: Path = Path(sys.executable).parent, *, search_path: str | None = None
) -> Mapping[str, StdioServer]:
    """Return the demo's servers by name.

    Args:
        folder: Where pip puts programs; searched first.
        search_path: Where else; None is ``PATH``.

    Raises:
        ConfigError: A server is not installed.
    """
    servers: dict[str, StdioServer] = {}
    for name, (program, *args) in _PROGRAMS.items():
        command = shutil.which(program, path=str(folder)) or shutil.which(program, path=search_path)
        if command is None:
            raise ConfigError(
                f'the demo\'s server {program!r} is not installed: python -m pip install ".[demo]"'
            )
        servers[name] = StdioServer(command=command, args=tuple(args))
    return servers
