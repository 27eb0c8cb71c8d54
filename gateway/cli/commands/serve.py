"""`gateway serve`. Standard output is for the protocol, standard error for people."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Literal, get_args

from typer import Context, Option

from gateway.cli import options
from gateway.cli.command import Output, command, command_group, note, warn
from gateway.cli.session import command_options, open_gateway, provision_options, read_config
from gateway.cli.signals import Shutdown, graceful_shutdown, watch_file
from gateway.errors import ConfigError, Failed, attempt
from gateway.gateway import Gateway
from gateway.manifests.manifest import Manifest
from gateway.mcp.stdio import kill_all
from gateway.mcp.traffic import Bucket
from gateway.options import Confirm, DiscoveryOptions, Options, SearchOptions
from gateway.options.environment import variables
from gateway.provision.options import ProvisionOptions
from gateway.provision.policy import by_policy
from gateway.provision.provisioner import Provisioner
from gateway.runtime.json_models import read_value
from gateway.search.rank.policies import log
from gateway.serve.auth import INSTALL, read_tokens
from gateway.serve.exporters import start_exporters, stop_exporters
from gateway.serve.extra_tools import ExtraName, extra_tools
from gateway.serve.http import HttpOptions, MetricsPage, Transport, serve_http
from gateway.serve.mcp_server import mcp_server, serve_stdio
from gateway.types import ANYONE, Caller

Extra = Literal[ExtraName, "route", "next"]
"""Tools on demand; *route* shows servers before tools, *next* the graph's next steps."""

_DEFAULT = HttpOptions()
_OF_ADDRESSES = (
    *("host", "port", "max_connections", "max_sessions"),
    *("token_env", "tokens", "allow_host", "allow_origin", "metrics"),
)
"""Parameters that mean nothing over pipes."""
_LOG_RECORDS_PER_S = 5
_LOG_BURST_RECORDS = 100

app = command_group()


@command(app, has_json=False)
def serve(  # noqa: PLR0913  (one for each option)
    context: Context,
    *,
    http: Annotated[bool, Option("--http/--stdio", help="Streamable HTTP, or pipes.")] = False,
    expose: Annotated[
        Literal["meta", "all"],
        Option(help="meta: search and call; all: the catalog's tools, in pages."),
    ] = "meta",
    host: Annotated[str, Option(help="Where to listen.")] = _DEFAULT.host,
    port: Annotated[int, Option(help="0 takes a free one.")] = _DEFAULT.port,
    token_env: Annotated[str, Option(help="The variable that holds the clients' token.")] = "",
    allow_host: Annotated[
        options.Texts, Option(help="Another host name that requests may use.")
    ] = None,
    allow_origin: Annotated[
        options.Texts, Option(help="A web origin whose pages may send requests.")
    ] = None,
    extra: Annotated[
        options.Texts,
        Option(
            "--with", help="discover; provision, which plans; install, which does it; route; next."
        ),
    ] = None,
    confirm: Annotated[
        Confirm | None,
        Option(
            help="With --expose meta: the calls that the client's user is asked about.",
            show_default="destructive",
        ),
    ] = None,
    api: Annotated[bool, Option("--api/--no-api", help="With --http: the catalog as JSON.")] = True,
    tokens: Annotated[Path | None, Option(help="With --http: clients and scopes, as TOML.")] = None,
    metrics: Annotated[
        bool, Option("--metrics", help="With --http: /metrics, for Prometheus to read.")
    ] = False,
    max_connections: Annotated[int, Option(min=1, help="With --http.")] = _DEFAULT.max_connections,
    max_sessions: Annotated[int, Option(min=1, help="With --http.")] = _DEFAULT.max_sessions,
    registry: options.Registry = "",
    trust: options.Trust = None,
    config: options.Config = options.DEFAULT_CONFIG,
    documents: options.Graph = None,
    strategy: options.Strategy = None,
    normalize: options.Normalize = "",
    caller: Caller | None = None,
) -> Output:
    """Serve the configured servers' tools as one MCP server.

    Requests are accepted at once; the first one that needs the catalog waits for it. The
    configuration is read again when it changes, or at SIGHUP. --scope, --tenant and --user name the
    caller over pipes, and over HTTP the operator: the one without a token, or with --token-env.
    Spans and metrics are exported where OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_TRACES_EXPORTER or
    OTEL_METRICS_EXPORTER ask for it.
    """
    if not http:
        _refuse_options_of_addresses(context)
    extras = _read_extras(extra, expose)
    address = HttpOptions(
        host=host,
        port=port,
        token=_read_token(token_env),
        hosts=tuple(allow_host or ()),
        origins=tuple(allow_origin or ()),
        tokens=read_tokens(tokens) if tokens else (),
        caller=caller or ANYONE,
        max_connections=max_connections,
        max_sessions=max_sessions,
    )
    manifest = read_config(config)
    warn(manifest.warnings)
    own_options = serve_options(manifest, extras, confirm)
    page = start_exporters(with_page=metrics)
    opened = open_gateway(
        manifest, strategy=strategy, documents=documents, options=own_options, normalize=normalize
    )
    provision = provision_options(manifest, registry=registry, trust=trust)
    with graceful_shutdown() as shutdown, opened as gateway:
        shutdown.close, shutdown.kill = partial(_close, gateway), kill_all
        transport = _transport(gateway, address if http else None, page, shutdown, with_api=api)
        names = frozenset(name for name in get_args(ExtraName) if name in extras)
        scope = INSTALL if address.needs_token else ""
        provisioner = _provisioner(gateway, provision, config)
        tools = tuple(extra_tools(gateway, names, provisioner, install_scope=scope))
        server = mcp_server(gateway, expose=expose, extras=tools, caller=address.caller)
        asyncio.run(_run(gateway, partial(transport, server), config))
        shutdown.has_begun = True
    return Output(None, "")


def _read_extras(names: options.Texts, expose: str) -> frozenset[Extra]:
    extras: frozenset[Extra] = read_value(frozenset[Extra], names or (), where="--with")
    if extras and expose == "all":
        # A tool of the catalog may have the name of an extra tool.
        raise ConfigError("--with goes with --expose meta, not with all")
    return extras


def _refuse_options_of_addresses(context: Context) -> None:
    """Refuse those that were typed: a server whose user names a token must not run without."""
    misplaced = [
        f"--{name.replace('_', '-')}"
        for name in _OF_ADDRESSES
        if (source := context.get_parameter_source(name)) and source.name == "COMMANDLINE"
    ]
    if misplaced:
        raise ConfigError(f"{', '.join(misplaced)} needs --http: over pipes there is no address")


def _close(gateway: Gateway) -> None:
    gateway.close()
    stop_exporters()


def _read_token(variable: str) -> str:
    token = variables(frozenset({variable})).get(variable, "").strip()
    if variable and not token:
        raise ConfigError(f"the environment variable {variable} is not set: it holds the token")
    return token


def serve_options(manifest: Manifest, extras: frozenset[Extra], confirm: Confirm | None) -> Options:
    """Return the options of the gateway that is served; what the command line says wins."""
    discovery = DiscoveryOptions(
        route_name="route_tools" if "route" in extras else "",
        next_name="next_tools" if "next" in extras else "",
    )
    # No client waits for vectors.
    base = Options(search=SearchOptions(first_search="words"), discovery=discovery)
    own_options = command_options(manifest, base)
    chat = replace(own_options.chat, confirm=confirm or own_options.chat.confirm)
    return replace(own_options, chat=chat)


def _transport(
    gateway: Gateway,
    address: HttpOptions | None,
    page: MetricsPage | None,
    shutdown: Shutdown,
    *,
    with_api: bool,
) -> Transport:
    if address is None:
        return serve_stdio

    def on_listening(url: str) -> None:
        note(f"serving {url}")
        if with_api:
            note(f"the catalog as JSON is described at {url.removesuffix('/mcp')}/openapi.json")

    transport = partial(
        serve_http,
        options=address,
        metrics=page,
        telemetry=gateway.telemetry,
        on_listening=on_listening,
        on_stop=shutdown.start_limit,
    )
    if not with_api:
        return transport
    from gateway.serve.api.app import api_routes  # noqa: PLC0415  (pipes need no HTTP API)

    return partial(transport, routes=api_routes(gateway, address))


def _provisioner(gateway: Gateway, options: ProvisionOptions, config: Path) -> Provisioner:
    return Provisioner(
        gateway,
        options=options,
        config=config,
        # There is no person to ask.
        consent=by_policy,
        progress=lambda *step: note(" ".join(filter(None, ("provision:", *step)))),
    )


async def _run(gateway: Gateway, serve: Callable[[], Awaitable[None]], config: Path) -> None:
    indexing = asyncio.create_task(_index(gateway))
    # What a search over HTTP wants explained; nothing else is logged so.
    explained = logging.StreamHandler()
    log.addHandler(explained)
    log.setLevel(logging.DEBUG)
    for handler in filter(None, (explained, logging.lastResort)):
        limit_log(handler)
    try:
        async with watch_file(config, lambda: _reload(gateway)):
            await serve()
    except ConfigError as error:
        # The listener does not know the options of the command.
        raise ConfigError(f"{error} (--host, --port)") from error
    finally:
        indexing.cancel()


def limit_log(handler: logging.Handler) -> None:
    """Let few records a second through *handler*: each request of a client may cause some."""
    records = Bucket(_LOG_RECORDS_PER_S, _LOG_BURST_RECORDS)

    def admits(_record: logging.LogRecord) -> bool:
        is_over = bool(records.take(1))
        if is_over:
            records.take(-1)
        return not is_over

    handler.addFilter(admits)


async def _reload(gateway: Gateway) -> None:
    """Read the configuration again and print what changed."""
    reloaded = await attempt(gateway.reload())
    if isinstance(reloaded, Failed):
        note(f"the servers stay as they were: {reloaded.reason}; mend it, and it is read again")
        return
    warn(reloaded.diagnostics)
    parts = {"added": reloaded.added, "changed": reloaded.changed, "removed": reloaded.removed}
    changes = "; ".join(f"{what} {', '.join(names)}" for what, names in parts.items() if names)
    note(f"configuration read again: {changes or 'nothing changed'}")
    await _index(gateway)


async def _index(gateway: Gateway) -> None:
    """List and index before the first request, and print what could not be used."""
    report = await attempt(gateway.report())
    if isinstance(report, Failed):
        note(f"the catalog could not be indexed: {report.reason}")
        return
    warn(report.diagnostics)
