"""The server of `gateway serve`: transport, routes, and reloading of a changed configuration."""

from __future__ import annotations

import asyncio
import logging
import threading
import webbrowser
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from gateway.cli.command import note, warn
from gateway.cli.signals import OnChange, Shutdown, graceful_shutdown, watch_files
from gateway.errors import ConfigError, Failed, MissingExtraError, attempt
from gateway.gateway import Gateway
from gateway.mcp.traffic import Bucket
from gateway.options import Options
from gateway.serve.authenticator import Authenticator
from gateway.serve.console.access import Sessions
from gateway.serve.console.page import ConsoleOptions
from gateway.serve.drain import probe_routes
from gateway.serve.guard import CONSOLE
from gateway.serve.http import PATH, ConsoleRoutes, MetricsPage, Transport, serve_http
from gateway.serve.http_options import HttpOptions, is_bare_ipv6, is_loopback
from gateway.serve.mcp_server import mcp_server, serve_stdio
from gateway.types import Caller

_LOG_RECORDS_PER_S = 5
_LOG_BURST_RECORDS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedParts:
    """Optional parts served over HTTP."""

    metrics: MetricsPage | None = None
    api: bool = True
    console: ConsoleOptions | None = None
    """Files of the console; None disables it."""
    open_console: bool = False
    """True to open the console in a browser."""


def transport_of(
    gateway: Gateway,
    address: HttpOptions | None,
    parts: ServedParts,
    shutdown: Shutdown,
    authenticator: Authenticator | None = None,
) -> Transport:
    """Return the transport that serves *gateway*: pipes if *address* is None, otherwise HTTP.

    *shutdown* is notified when a signal stops the HTTP server. Without *authenticator*, one is
    created from *address*.
    """
    if address is None:
        return serve_stdio
    authenticator = authenticator or Authenticator(address)
    sessions = Sessions(address, authenticator)
    routes: ConsoleRoutes = ()
    if parts.console:
        from gateway.serve.console.app import console_routes  # noqa: PLC0415  (an extra)

        routes = console_routes(gateway, parts.console, sessions)

    def on_listening(url: str) -> None:
        root = url.removesuffix(PATH)
        note(f"serving {url}")
        if parts.api:
            note(f"REST API of the catalog: {root}/openapi.json")
        if parts.console:
            _announce(f"{root}{CONSOLE}", sessions.launch_token, opens=parts.open_console)

    transport = partial(
        serve_http,
        options=address,
        console=routes,
        metrics=parts.metrics,
        authenticator=authenticator,
        telemetry=gateway.telemetry,
        on_listening=on_listening,
        on_stop=shutdown.note_signal,
    )
    pages = _sign_in_pages(gateway, authenticator, sessions)
    served = [*probe_routes(gateway), *pages]
    if parts.api:
        served += _api_routes(gateway, address)
    return partial(transport, routes=served)


def _api_routes(gateway: Gateway, address: HttpOptions) -> ConsoleRoutes:
    from gateway.serve.api.app import api_routes  # noqa: PLC0415  (pipes need no HTTP API)
    from gateway.serve.plugin_routes import plugin_routes  # noqa: PLC0415  (likewise)

    return [*api_routes(gateway, address), *plugin_routes(gateway)]


def _sign_in_pages(
    gateway: Gateway, authenticator: Authenticator, sessions: Sessions
) -> ConsoleRoutes:
    from gateway.serve.account import account_routes  # noqa: PLC0415  (pipes need no pages)
    from gateway.serve.sign_in import sign_in_routes  # noqa: PLC0415  (likewise)

    async def name_caller(token: str) -> Caller:
        return (await authenticator.authenticate([f"Bearer {token}"])).caller

    pages = sign_in_routes(gateway, name_caller, sessions)
    return (*pages, *account_routes(sessions, gateway.options))


def with_public_url(own_options: Options, address: HttpOptions | None) -> Options:
    """Return *own_options*. On loopback, a missing public URL becomes the server's address."""
    if own_options.public_url or address is None or not address.port:
        return own_options
    if not is_loopback(address.host):
        return own_options
    url_host = f"[{address.host}]" if is_bare_ipv6(address.host) else address.host
    return replace(own_options, public_url=f"http://{url_host}:{address.port}")


def show_console(gateway: Gateway, console: ConsoleOptions) -> None:
    """Serve *console* on a free port until the user stops it, and print its URL."""
    parts = ServedParts(api=False, console=console)
    with graceful_shutdown() as shutdown, suppress(KeyboardInterrupt):
        transport = transport_of(gateway, HttpOptions(port=0), parts, shutdown)
        served = partial(transport, mcp_server(gateway))
        asyncio.run(_wait(served))


async def _wait(serve: Callable[[], Awaitable[None]]) -> None:
    await serve()


def _announce(url: str, launch_token: str, *, opens: bool) -> None:
    """Print the console's URL with its sign-in token, and open it if *opens*."""
    entrance = f"{url}?token={launch_token}" if launch_token else url
    note(f"console: {entrance}")
    if opens:
        # Some browsers return only when they are closed.
        threading.Thread(target=webbrowser.open, args=(entrance,), daemon=True).start()


def wants_console(wanted: bool | None) -> bool:
    """Return whether to serve the console. None serves it if its extra is installed.

    Raises:
        MissingExtraError: If the console is wanted but its extra is not installed.
    """
    is_installed = find_spec("jinja2") is not None
    if wanted and not is_installed:
        raise MissingExtraError("the console", "console")
    return is_installed if wanted is None else wanted


async def run(
    gateway: Gateway,
    serve: Callable[[], Awaitable[None]],
    config: Path,
    watched: Mapping[Path, OnChange] | None = None,
) -> None:
    """Run *serve*. When *config* or a *watched* file changes, reload it or run its callback.

    Raises:
        ConfigError: If the server cannot listen on the address.
    """
    indexing = asyncio.create_task(_index(gateway))
    # Explanations of searches are logged only here, at DEBUG level.
    explained = logging.StreamHandler()
    log = logging.getLogger("gateway.search")
    log.addHandler(explained)
    log.setLevel(logging.DEBUG)
    for handler in filter(None, (explained, logging.lastResort)):
        limit_log(handler)
    try:
        async with watch_files({config: lambda: _reload(gateway), **(watched or {})}):
            await serve()
    except ConfigError as error:
        # The listener does not know the command's options.
        raise ConfigError(f"{error} (--host, --port)") from error
    finally:
        indexing.cancel()


def limit_log(handler: logging.Handler) -> None:
    """Limit the records per second of *handler*, because clients can cause them."""
    records = Bucket(_LOG_RECORDS_PER_S, _LOG_BURST_RECORDS)

    def admits(_record: logging.LogRecord) -> bool:
        is_over = bool(records.take(1))
        if is_over:
            records.take(-1)
        return not is_over

    handler.addFilter(admits)


async def _reload(gateway: Gateway) -> None:
    reloaded = await attempt(gateway.reload())
    if isinstance(reloaded, Failed):
        note(f"servers unchanged: {reloaded.reason}; after a correction the file is read again")
        return
    warn(reloaded.diagnostics)
    parts = {"added": reloaded.added, "changed": reloaded.changed, "removed": reloaded.removed}
    changes = "; ".join(f"{what} {', '.join(names)}" for what, names in parts.items() if names)
    note(f"configuration reloaded: {changes or 'no changes'}")
    await _index(gateway)


async def _index(gateway: Gateway) -> None:
    """Index the servers before the first request, and print warnings."""
    report = await attempt(gateway.report())
    if isinstance(report, Failed):
        note(f"the catalog could not be indexed: {report.reason}")
        return
    warn(report.diagnostics)
