"""`gateway serve`. Standard output is for the protocol, standard error for people."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Literal, get_args

from typer import Context, Option

from gateway.cli import options
from gateway.cli.command import Output, command, command_group, note, warn
from gateway.cli.server import ServedParts, run, transport_of, wants_console, with_public_url
from gateway.cli.session import (
    command_options,
    open_gateway,
    provision_options,
    read_config,
    recording,
)
from gateway.cli.signals import LIMIT_S, graceful_shutdown
from gateway.config.manifest import Manifest
from gateway.errors import ConfigError
from gateway.gateway import Gateway
from gateway.mcp.servers import HttpServer, OAuth, StdioServer
from gateway.mcp.stdio import kill_all
from gateway.options import Confirm, DiscoveryOptions, Options, SearchOptions
from gateway.options.environment import catalog_store_path, variables
from gateway.options.provision import ProvisionOptions
from gateway.runtime.json_models import read_value
from gateway.serve.auth import INSTALL
from gateway.serve.authenticator import NOBODY, Authenticator, read_token_file
from gateway.serve.console.page import ConsoleOptions
from gateway.serve.console.spans import SpanRing
from gateway.serve.exporters import start_exporters, stop_exporters
from gateway.serve.extra_tools import ExtraName, extra_tools
from gateway.serve.http_options import HttpOptions
from gateway.serve.mcp_server import ExtraTool, mcp_server
from gateway.types import ANYONE, Caller

Extra = Literal[ExtraName, "route", "next", "programs"]
"""Tools on demand; *route* shows servers before tools, *next* the graph's next steps, *programs*
runs programs over tools."""

Requests = Annotated[
    Path | None,
    Option(
        help="With the console: the file of test requests.",
        show_default="asked.md beside the configuration",
    ),
]
Reports = Annotated[
    Path | None,
    Option(
        help="With the console: the folder of evaluation reports.",
        show_default="beside the catalog's store",
    ),
]
_DEFAULT = HttpOptions()
_OF_ADDRESSES = (
    *("host", "port", "max_connections", "max_sessions", "drain_delay", "drain_timeout"),
    *("token_env", "tokens", "allow_host", "allow_origin", "metrics"),
    *("console", "open_console", "requests", "reports"),
)
"""Parameters that mean nothing over pipes."""
_NO_PARTS = (
    "--part was removed: one process holds a million tools. For more requests, serve the whole "
    "catalog in several replicas over one PostgreSQL store"
)

app = command_group()


@command(app, has_json=False)
def serve(
    context: Context,
    *,
    http: Annotated[bool, "--http/--stdio", "Streamable HTTP, or pipes."] = False,
    expose: Annotated[
        Literal["meta", "all"], "meta: search and call; all: the catalog's tools, in pages."
    ] = "meta",
    host: Annotated[str, "Where to listen."] = _DEFAULT.host,
    port: Annotated[int, "0 takes a free one."] = _DEFAULT.port,
    token_env: Annotated[str, "The variable that holds the clients' token."] = "",
    allow_host: Annotated[options.Texts, "Another host name that requests may use."] = None,
    allow_origin: Annotated[options.Texts, "A web origin whose pages may send requests."] = None,
    extra: Annotated[
        options.Texts,
        "--with",
        "discover; provision, which plans; install, which does it; route; next; programs.",
    ] = None,
    confirm: Annotated[
        Confirm | None,
        Option(
            help="With --expose meta: the calls that the client's user is asked about.",
            show_default="destructive",
        ),
    ] = None,
    api: Annotated[bool, "With --http: the catalog as JSON."] = True,
    tokens: Annotated[
        Path | None, "With --http: tokens, identity providers and scopes, as TOML."
    ] = None,
    metrics: Annotated[bool, "With --http: /metrics, for Prometheus to read."] = False,
    console: Annotated[
        bool | None,
        Option(
            "--console/--no-console",
            help="With --http: pages for people, at /console.",
            show_default="if its extra is installed",
        ),
    ] = None,
    open_console: Annotated[bool, "Open it in a browser."] = False,
    requests: Requests = None,
    reports: Reports = None,
    part: Annotated[str, Option(hidden=True)] = "",
    max_connections: Annotated[int, Option(min=1, help="With --http.")] = _DEFAULT.max_connections,
    max_sessions: Annotated[int, Option(min=1, help="With --http.")] = _DEFAULT.max_sessions,
    drain_delay: Annotated[
        float | None,
        Option(
            min=0,
            help="With --http: seconds after SIGTERM in which requests are still answered.",
            show_default="5, on loopback 0",
        ),
    ] = None,
    drain_timeout: Annotated[
        float, Option(min=0, help="With --http: seconds that calls may then still take.")
    ] = _DEFAULT.drain_timeout_s,
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
    configuration and the file of --tokens are read again when they change, or at SIGHUP. --scope,
    --tenant and --user name the caller over pipes, and over HTTP the operator: the one without a
    token, or with --token-env. Spans and metrics are exported where OTEL_EXPORTER_OTLP_ENDPOINT,
    OTEL_TRACES_EXPORTER or OTEL_METRICS_EXPORTER ask for it.
    """
    _refuse_options(context, part, needed=http)
    has_console = http and wants_console(console)
    extras = _read_extras(extra, expose)
    address = HttpOptions(
        host=host,
        port=port,
        token=_read_token(token_env),
        hosts=tuple(allow_host or ()),
        origins=tuple(allow_origin or ()),
        **(read_token_file(tokens) if tokens else NOBODY),
        caller=caller or ANYONE,
        max_connections=max_connections,
        max_sessions=max_sessions,
        drain_delay_s=drain_delay,
        drain_timeout_s=drain_timeout,
    )
    manifest = read_config(config)
    warn(manifest.warnings)
    own_options = serve_options(manifest, extras, confirm, address if http else None)
    spans = SpanRing() if has_console else None
    page = start_exporters(with_page=metrics, processor=spans)
    opened = open_gateway(
        manifest, strategy=strategy, documents=documents, options=own_options, normalize=normalize
    )
    provision = provision_options(manifest, registry=registry, trust=trust)
    drain_s = address.delay_s + drain_timeout if http else 0
    with graceful_shutdown(LIMIT_S + drain_s) as shutdown, opened as gateway:
        shutdown.close, shutdown.kill = partial(_close, gateway), kill_all
        files = ConsoleOptions(config=config, documents=documents, spans=spans)
        pages = _with_files(files, own_options, requests, reports) if has_console else None
        parts = ServedParts(metrics=page, api=api, console=pages, open_console=open_console)
        authenticator = Authenticator(address)
        transport = transport_of(gateway, address if http else None, parts, shutdown, authenticator)
        watched = {tokens: partial(_read_again, tokens, address, authenticator)} if tokens else {}
        tools = _extra_tools(gateway, extras, provision, config, address)
        server = mcp_server(gateway, expose=expose, extras=tools, caller=address.caller)
        asyncio.run(run(gateway, partial(transport, server), config, watched))
        shutdown.has_begun = True
    return Output(None, "")


@command(app, has_json=False)
def console(
    context: Context,
    *,
    port: Annotated[int, "0 takes a free one."] = 0,
    browser: Annotated[bool, "Open one, or only print the address."] = True,
    requests: Requests = None,
    reports: Reports = None,
    config: options.Config = options.DEFAULT_CONFIG,
    documents: options.Graph = None,
    strategy: options.Strategy = None,
    normalize: options.Normalize = "",
    caller: Caller | None = None,
) -> Output:
    """See the catalog, its searches and its calls in a browser, on this machine alone.

    It is `gateway serve --http` on a free port, with the console opened.
    """
    return serve(
        context,
        http=True,
        port=port,
        console=True,
        open_console=browser,
        requests=requests,
        reports=reports,
        config=config,
        documents=documents,
        strategy=strategy,
        normalize=normalize,
        caller=caller,
    )


def _read_extras(names: options.Texts, expose: str) -> frozenset[Extra]:
    extras: frozenset[Extra] = read_value(frozenset[Extra], names or (), where="--with")
    if extras and expose == "all":
        # A tool of the catalog may have the name of an extra tool.
        raise ConfigError("--with goes with --expose meta, not with all")
    return extras


def _refuse_options(context: Context, part: str, *, needed: bool) -> None:
    """Refuse *part*, and options of addresses that are typed but not *needed*.

    A token that is named must be asked for.
    """
    if part:
        raise ConfigError(_NO_PARTS)
    misplaced = [
        f"--{name.replace('_', '-')}"
        for name in _OF_ADDRESSES
        if (source := context.get_parameter_source(name)) and source.name == "COMMANDLINE"
    ]
    if misplaced and not needed:
        raise ConfigError(f"{', '.join(misplaced)} needs --http: over pipes there is no address")


def _read_token(variable: str) -> str:
    token = variables(frozenset({variable})).get(variable, "").strip()
    if variable and not token:
        raise ConfigError(f"the environment variable {variable} is not set: it holds the token")
    return token


async def _read_again(tokens: Path, address: HttpOptions, authenticator: Authenticator) -> None:
    """Accept the callers that the file *tokens* names now; a file with a fault changes nothing."""
    try:
        options = replace(address, **read_token_file(tokens))
    except ConfigError as error:
        note(f"who may call stays as it was: {error}")
        return
    authenticator.replace(options)
    counts = f"tokens: {len(options.tokens)}, identity providers: {len(options.issuers)}"
    note(f"who may call was read again ({counts})")


def serve_options(
    manifest: Manifest,
    extras: frozenset[Extra],
    confirm: Confirm | None,
    address: HttpOptions | None = None,
) -> Options:
    """Return the options of the gateway that is served; what the command line says wins.

    It says what replicas do not share, and if users cannot sign in.
    """
    discovery = DiscoveryOptions(
        route_name="route_tools" if "route" in extras else "",
        next_name="next_tools" if "next" in extras else "",
        programs="programs" in extras,
    )
    # No client waits for vectors.
    base = Options(search=SearchOptions(first_search="words"), discovery=discovery)
    own_options = with_public_url(command_options(manifest, base), address)
    if own_options.store:
        _say_what_is_not_shared(manifest, own_options)
    auths = [each.auth for each in manifest.servers.values() if isinstance(each, HttpServer)]
    if not own_options.public_url and any(
        isinstance(each, OAuth) and each.per_user for each in auths
    ):
        note("users cannot sign in: set GATEWAY_PUBLIC_URL to where they reach this server")
    chat = replace(own_options.chat, confirm=confirm or own_options.chat.confirm)
    own_options = replace(own_options, chat=chat)
    return recording(own_options) if address else own_options


def _say_what_is_not_shared(manifest: Manifest, own_options: Options) -> None:
    if not own_options.host_key:
        note("sign-ins stay in files of this machine: to share them, set GATEWAY_HOST_KEY")
    programs = [name for name, each in manifest.servers.items() if isinstance(each, StdioServer)]
    if programs:
        names = ", ".join(programs)
        note(f"sessions to programs are not shared: each replica starts its own {names}")


def _extra_tools(
    gateway: Gateway,
    extras: frozenset[Extra],
    provision: ProvisionOptions,
    config: Path,
    address: HttpOptions,
) -> tuple[ExtraTool, ...]:
    names = frozenset(name for name in get_args(ExtraName) if name in extras)
    if not names:
        return ()
    from gateway.plugins.provision.policy import by_policy  # noqa: PLC0415  (it may not be installed)
    from gateway.plugins.provision.provisioner import Provisioner  # noqa: PLC0415  (likewise)

    provisioner = Provisioner(
        gateway,
        options=provision,
        config=config,
        # There is no person to ask.
        consent=by_policy,
        progress=lambda *step: note(" ".join(filter(None, ("provision:", *step)))),
    )
    scope = INSTALL if address.needs_token else ""
    return tuple(extra_tools(gateway, names, provisioner, install_scope=scope))


def _with_files(
    console: ConsoleOptions, own_options: Options, requests: Path | None, reports: Path | None
) -> ConsoleOptions:
    """Return *console* with files at their usual places where none are named."""
    folder = console.config.parent if console.config else Path()
    return replace(
        console,
        requests=requests or folder / "asked.md",
        reports=reports or catalog_store_path(own_options).parent / "reports",
        documents=console.documents if console.documents and console.documents.is_dir() else None,
    )


def _close(gateway: Gateway) -> None:
    gateway.close()
    stop_exporters()
