"""What `gateway serve` does. Standard output is for the protocol, standard error for people."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import get_args

from gateway.cli.ending import orderly
from gateway.cli.exits import OK
from gateway.cli.screen import note, warn
from gateway.cli.settings import QUIET, chosen, made
from gateway.cli.watching import followed
from gateway.errors import ConfigError, Failed, attempt
from gateway.gateway import Gateway
from gateway.options import DiscoveryOptions, Options, SearchOptions
from gateway.options.environment import variables
from gateway.provision.consent import by_policy
from gateway.provision.options import ProvisionOptions
from gateway.provision.provisioner import Provisioner
from gateway.serve.extras import Extra, Extras
from gateway.serve.http import HttpOptions, Way, serve_http
from gateway.serve.server import Expose, mcp_server
from gateway.serve.stdio import serve_stdio
from gateway.types import Strategy


def where(
    *,
    host: str | None,
    port: int | None,
    token_env: str,
    hosts: Sequence[str],
    origins: Sequence[str],
) -> HttpOptions:
    """Read where to listen, the token from the environment; None is the usual host or port.

    Raises:
        ConfigError: If the variable is not set, or the address may not be served like that.
    """
    token = variables(frozenset({token_env})).get(token_env, "").strip() if token_env else ""
    if token_env and not token:
        raise ConfigError(f"the environment variable {token_env} is not set: it holds the token")
    usual = HttpOptions()
    return HttpOptions(
        host=usual.host if host is None else host,
        port=usual.port if port is None else port,
        token=token,
        hosts=tuple(hosts),
        origins=tuple(origins),
    )


def check_pipes(options: Sequence[str]) -> None:
    """Refuse what serving this process's own pipes cannot keep.

    Args:
        options: What was said that only an address needs.

    Raises:
        ConfigError: Something was: whoever names a token must not be served without one.
    """
    if options:
        raise ConfigError(f"{', '.join(options)} needs --http: over pipes there is no address")


ADVICE = {"route": "route_tools", "next": "next_tools"}
"""Meta-tools that give servers before tools, and what the graph puts after tools."""


@dataclass(frozen=True, slots=True, kw_only=True)
class More:
    """What is served beside search and call."""

    extras: frozenset[Extra] = frozenset()
    advice: frozenset[str] = frozenset()
    """Of `ADVICE`."""
    registry: str = ""
    trust: tuple[str, ...] = ()
    api: bool = True
    """Whether the catalog is served over HTTP too, beside the protocol."""
    tokens: Path | None = None
    """The file of who may use that; see `gateway.serve.api.auth`."""

    def check(self, expose: Expose) -> None:
        """Refuse what does not go together.

        Raises:
            ConfigError: The whole catalog is served: a tool of its own may be called like ours.
        """
        if (self.extras or self.advice) and expose == "all":
            raise ConfigError("--with goes with --expose meta, not with all")

    @property
    def options(self) -> Options:
        """The options of a gateway that gives such advice, and lets no client wait for vectors."""
        route, following = (
            ADVICE[each] if each in self.advice else "" for each in ("route", "next")
        )
        return Options(
            search=SearchOptions(first_search="words"),
            discovery=DiscoveryOptions(route_name=route, next_name=following),
        )


def extras_of(names: Sequence[str]) -> frozenset[Extra]:
    """Read which tools are served besides.

    Raises:
        ConfigError: There is no such tool.
    """
    known = get_args(Extra)
    found: frozenset[Extra] = frozenset(each for each in known if each in names)
    for name in names:
        if name not in known and name not in ADVICE:
            raise ConfigError(f"--with takes {', '.join((*known, *ADVICE))}, not {name!r}")
    return found


def serve(
    http: HttpOptions | None,
    *,
    expose: Expose,
    more: More,
    config: Path | None,
    documents: Path | None,
    strategy: Strategy | None,
) -> int:
    """Serve until the client hangs up or the process is told to stop.

    Requests are taken at once; the first that needs the catalog waits until it is listed. The
    configuration is read again when it changes, or at SIGHUP.
    """
    more.check(expose)
    made_of = made(config, strategy=chosen(strategy), documents=documents, options=more.options)
    with orderly() as ending, made_of as (gateway, manifest):
        ending.close = gateway.close
        warn(manifest.warnings)
        file = Path(manifest.origin)
        way = serve_stdio if http is None else _over_http(gateway, http, more)
        with _extras(gateway, more, file) as extras:
            asyncio.run(_serve(gateway, way, expose, [file], extras))
        ending.begun = True
    return OK


def _over_http(gateway: Gateway, http: HttpOptions, more: More) -> Way:
    told = partial(serve_http, options=http, listening=partial(_listening, api=more.api))
    if not more.api:
        return told
    from gateway.serve.api.app import api_app, beside  # noqa: PLC0415  (who serves pipes needs none)
    from gateway.serve.api.auth import read_tokens  # noqa: PLC0415  (likewise)

    tokens = read_tokens(more.tokens) if more.tokens else ()
    return partial(told, beside=beside(api_app(gateway, http, tokens=tokens)))


def _listening(url: str, *, api: bool) -> None:
    note(f"serving {url}")
    if api:
        note(f"the catalog as JSON is described at {url.removesuffix('/mcp')}/openapi.json")


@contextmanager
def _extras(gateway: Gateway, more: More, config: Path) -> Iterator[Extras]:
    if not more.extras - {"discover"}:
        yield Extras(gateway, more.extras)
        return
    provisioner = Provisioner(
        gateway,
        options=ProvisionOptions(registry=more.registry, namespaces=more.trust),
        config=config,
        # Nobody can be asked here.
        consent=by_policy,
        progress=lambda step, outcome, about: note(f"provision: {step} {outcome} {about}".strip()),
    )
    with closing(provisioner):
        yield Extras(gateway, more.extras, provisioner)


async def _serve(
    gateway: Gateway,
    way: Way,
    expose: Expose,
    files: Sequence[Path],
    extras: Extras,
) -> None:
    server = mcp_server(gateway, expose=expose)
    extras.join(server)
    listing = asyncio.create_task(_listed(gateway))
    try:
        async with followed(files, lambda: _reloaded(gateway)):
            await way(server)
    except ConfigError as error:
        # What listens knows no flags.
        raise ConfigError(f"{error} (--host, --port)") from error
    finally:
        listing.cancel()


async def _reloaded(gateway: Gateway) -> None:
    """Take up what the configuration says now, and say what that is."""
    done = await attempt(gateway.reload())
    if isinstance(done, Failed):
        note(f"the servers stay as they were: {done.reason}; mend it, and it is read again")
        return
    warn(done.diagnostics)
    parts = {"added": done.added, "changed": done.changed, "removed": done.removed}
    told = "; ".join(f"{what} {', '.join(names)}" for what, names in parts.items() if names)
    note(f"configuration read again: {told or 'nothing changed'}")
    await _listed(gateway)


async def _listed(gateway: Gateway) -> None:
    """List and index before anybody asks, and say what could not be used."""
    report = await attempt(gateway.report())
    if isinstance(report, Failed):
        note(f"the catalog could not be indexed: {report.reason}")
        return
    warn(each for each in report.diagnostics if each.code not in QUIET)
