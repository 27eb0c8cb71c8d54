"""`gateway serve` and `gateway console`. Standard output is for the protocol."""

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
"""Tools of ``--with``: *route* lists servers before tools, *next* the next steps of the graph, and
*programs* runs programs over tools."""

Requests = Annotated[
    Path | None,
    Option(
        help="With the console: file of test requests.",
        show_default="asked.md next to the configuration",
    ),
]
Reports = Annotated[
    Path | None,
    Option(
        help="With the console: folder of evaluation reports.",
        show_default="next to the catalog's store",
    ),
]
_DEFAULT = HttpOptions()
_HTTP_PARAMETERS = (
    *("host", "port", "max_connections", "max_sessions", "drain_delay", "drain_timeout"),
    *("token_env", "tokens", "allow_host", "allow_origin", "metrics"),
    *("console", "open_console", "requests", "reports"),
)
_PART_REMOVED = (
    "--part was removed, because one process can hold a million tools. For more requests per "
    "second, run several replicas of the whole catalog on one PostgreSQL store"
)

app = command_group()


@command(app, has_json=False)
def serve(
    context: Context,
    *,
    http: Annotated[bool, "--http/--stdio", "Serve over Streamable HTTP, or over pipes."] = False,
    expose: Annotated[
        Literal["meta", "all"],
        "meta: tools that search and call; all: the catalog's tools, in pages.",
    ] = "meta",
    host: Annotated[str, "Address to listen on."] = _DEFAULT.host,
    port: Annotated[int, "Port to listen on; 0 uses a free one."] = _DEFAULT.port,
    token_env: Annotated[str, "Environment variable with the clients' token."] = "",
    allow_host: Annotated[
        options.Texts, "Additional host name that requests may use; repeatable."
    ] = None,
    allow_origin: Annotated[
        options.Texts, "Web origin whose pages may send requests; repeatable."
    ] = None,
    extra: Annotated[
        options.Texts,
        "--with",
        "Additional tools: discover, provision (plans), install (installs), route, next, programs.",
    ] = None,
    confirm: Annotated[
        Confirm | None,
        Option(
            help="With --expose meta: calls that the client's user has to confirm.",
            show_default="destructive",
        ),
    ] = None,
    api: Annotated[bool, "With --http: serve the REST API of the catalog."] = True,
    tokens: Annotated[
        Path | None, "With --http: TOML file of tokens, identity providers and scopes."
    ] = None,
    metrics: Annotated[bool, "With --http: serve /metrics for Prometheus."] = False,
    console: Annotated[
        bool | None,
        Option(
            "--console/--no-console",
            help="With --http: serve the console at /console.",
            show_default="if its extra is installed",
        ),
    ] = None,
    open_console: Annotated[bool, "Open the console in a browser."] = False,
    requests: Requests = None,
    reports: Reports = None,
    part: Annotated[str, Option(hidden=True)] = "",
    max_connections: Annotated[
        int, Option(min=1, help="With --http: maximum number of connections.")
    ] = _DEFAULT.max_connections,
    max_sessions: Annotated[
        int, Option(min=1, help="With --http: maximum number of MCP sessions.")
    ] = _DEFAULT.max_sessions,
    drain_delay: Annotated[
        float | None,
        Option(
            min=0,
            help="With --http: seconds after SIGTERM in which requests are still accepted.",
            show_default="5, on loopback 0",
        ),
    ] = None,
    drain_timeout: Annotated[
        float, Option(min=0, help="With --http: seconds that running calls may take after that.")
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
    --tenant and --user describe the caller over pipes. Over HTTP they describe the operator: the
    caller without a token, or with the token of --token-env. Spans and metrics are exported if
    OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_TRACES_EXPORTER or OTEL_METRICS_EXPORTER is set.
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
        watched = {tokens: partial(_load_tokens, tokens, address, authenticator)} if tokens else {}
        tools = _extra_tools(gateway, extras, provision, config, address)
        server = mcp_server(gateway, expose=expose, extras=tools, caller=address.caller)
        asyncio.run(run(gateway, partial(transport, server), config, watched))
        shutdown.has_begun = True
    return Output(None, "")


@command(app, has_json=False)
def console(
    context: Context,
    *,
    port: Annotated[int, "Port to listen on; 0 uses a free one."] = 0,
    browser: Annotated[bool, "Open a browser, or only print the address."] = True,
    requests: Requests = None,
    reports: Reports = None,
    config: options.Config = options.DEFAULT_CONFIG,
    documents: options.Graph = None,
    strategy: options.Strategy = None,
    normalize: options.Normalize = "",
    caller: Caller | None = None,
) -> Output:
    """Open the console in a browser: the catalog, its searches and its calls. This machine only.

    The command is `gateway serve --http` on a free port, with the console opened.
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
        # With ``all``, a tool of the catalog may have the same name as an extra tool.
        raise ConfigError("--with requires --expose meta, not all")
    return extras


def _refuse_options(context: Context, part: str, *, needed: bool) -> None:
    """Refuse *part*, and options that require HTTP unless *needed*.

    Ignoring ``--token-env`` would serve without the wanted token.
    """
    if part:
        raise ConfigError(_PART_REMOVED)
    misplaced = [
        f"--{name.replace('_', '-')}"
        for name in _HTTP_PARAMETERS
        if (source := context.get_parameter_source(name)) and source.name == "COMMANDLINE"
    ]
    if misplaced and not needed:
        raise ConfigError(f"{', '.join(misplaced)}: only for HTTP, so add --http")


def _read_token(variable: str) -> str:
    token = variables(frozenset({variable})).get(variable, "").strip()
    if variable and not token:
        raise ConfigError(
            f"the environment variable {variable} is not set: set it to the clients' token"
        )
    return token


async def _load_tokens(tokens: Path, address: HttpOptions, authenticator: Authenticator) -> None:
    """Accept only the callers in the file *tokens*. A faulty file changes nothing."""
    try:
        options = replace(address, **read_token_file(tokens))
    except ConfigError as error:
        note(f"accepted callers unchanged: {error}")
        return
    authenticator.replace(options)
    counts = f"tokens: {len(options.tokens)}, identity providers: {len(options.issuers)}"
    note(f"accepted callers reloaded ({counts})")


def serve_options(
    manifest: Manifest,
    extras: frozenset[Extra],
    confirm: Confirm | None,
    address: HttpOptions | None = None,
) -> Options:
    """Return the options of the served gateway, overridden by the command line.

    Print notes about state that replicas do not share, and about users who cannot sign in.
    """
    discovery = DiscoveryOptions(
        route_name="route_tools" if "route" in extras else "",
        next_name="next_tools" if "next" in extras else "",
        programs="programs" in extras,
    )
    # Clients do not wait for vectors.
    base = Options(search=SearchOptions(first_search="words"), discovery=discovery)
    own_options = with_public_url(command_options(manifest, base), address)
    if own_options.store:
        _note_unshared_state(manifest, own_options)
    auths = [server.auth for server in manifest.servers.values() if isinstance(server, HttpServer)]
    if not own_options.public_url and any(
        isinstance(server, OAuth) and server.per_user for server in auths
    ):
        note("users cannot sign in: set GATEWAY_PUBLIC_URL to the address of this server")
    chat = replace(own_options.chat, confirm=confirm or own_options.chat.confirm)
    own_options = replace(own_options, chat=chat)
    return recording(own_options) if address else own_options


def _note_unshared_state(manifest: Manifest, own_options: Options) -> None:
    if not own_options.host_key:
        note("sign-ins are stored in files of this machine: to share them, set GATEWAY_HOST_KEY")
    programs = [
        name for name, server in manifest.servers.items() if isinstance(server, StdioServer)
    ]
    if programs:
        names = ", ".join(programs)
        note(f"server programs are not shared: each replica starts its own {names}")


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
    """Return *console* with default paths for unnamed files."""
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
