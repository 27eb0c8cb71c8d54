"""Hooks through which plugins extend a gateway.

A plugin is a module or an object with functions of these names, each decorated with `hookimpl`.
Hooks run when a gateway or an application is created, or when a person requests the registered
objects. They never run during a search or a call. Objects with the same order are sorted by name.

Example:
    >>> from gateway.hookspecs import hookimpl
    >>> from gateway.testing import HashingEmbedder
    >>> @hookimpl
    ... def register_embedders():
    ...     return {"hashing": HashingEmbedder}
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pluggy

from gateway.embed.protocol import Embedder
from gateway.mcp.servers import ApiOpener
from gateway.search.query import Correct

PROJECT = "tool_gateway"
hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginCommand:
    """A command of ``gateway``, or a group of commands."""

    summary: str
    """Description for ``gateway --help``: one sentence."""
    module: str
    """Name of a module with a ``typer.Typer`` called ``app``. It is imported when the command
    runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IssueSource:
    """A source of issues, which need the attention of a person."""

    name: str
    find: Callable[[Any, Path | None], Iterable[Any]]
    """Function that returns `gateway.attention.issues.Issue` values. It is called in a worker
    thread with the newest `IndexBuild` and the folder of evaluation reports, or None."""
    order: int = 0
    """Position of this source among all sources, lowest first. Sources with equal numbers are
    sorted by name."""


@hookspec
def register_commands() -> Mapping[str, PluginCommand]:
    """Return commands, keyed by the word after ``gateway`` on the command line.

    The commands of this package take precedence over plugin commands with the same name.
    """
    raise NotImplementedError


@hookspec
def register_databases() -> Mapping[str, Callable[..., object]]:
    """Return functions that open a `Store` in a database, keyed by the scheme of its address.

    A function receives the whole address, and the host's `VectorStore` or None. It does not connect
    to the database yet. It may raise `ConfigError` and `MissingExtraError`, whose messages never
    contain the address.
    """
    raise NotImplementedError


@hookspec
def register_edge_proposals() -> Mapping[str, Callable[..., object]]:
    """Return the implementation of `Gateway.propose_edges`, under the key ``propose``.

    The function receives the snapshot, the proposer and the telemetry, and the keyword arguments
    ``servers`` and ``caller``.
    """
    raise NotImplementedError


@hookspec
def register_edges(options: object) -> Sequence[object]:
    """Return sources of edges between tools.

    Each is a `gateway.index.edge_sources.EdgeSource`. The edges count as declared.

    Args:
        options: `GraphOptions` of the gateway.
    """
    raise NotImplementedError


@hookspec
def register_embedders() -> Mapping[str, Callable[[], Embedder]]:
    """Return functions that create embedders, keyed by the name to pass as ``Gateway(embedder=…)``.

    A function is called when a gateway with that name is created. It may raise `MissingExtraError`.
    """
    raise NotImplementedError


@hookspec
def register_issues() -> Sequence[IssueSource]:
    """Return sources of issues for `Gateway.issues` and ``gateway attention``."""
    raise NotImplementedError


@hookspec
def register_meta_tools(gateway: object) -> Sequence[object]:
    """Return further tools for models, next to the meta-tools search and call.

    Each tool is a `gateway.discovery.meta_tools.MetaTool`.

    Args:
        gateway: `Gateway` whose tools the chat client, adapter or server offers.
    """
    raise NotImplementedError


@hookspec
def register_query_forms() -> Mapping[str, Callable[[], Correct]]:
    """Return functions that create a form of queries, keyed by the name of the form.

    Searches use only the form ``corrected``: the query with corrected spelling. Its function is
    called when a gateway with `SearchOptions.spelling` is created, and returns a function that
    corrects a query.
    """
    raise NotImplementedError


@hookspec
def register_rankings() -> Mapping[str, Callable[[], object]]:
    """Return functions that create ranking policies, keyed by the argument ``ranking=`` of a
    search.

    Each function returns a `gateway.search.rank.policies.CatalogRanking`. It is called when a
    gateway is created. The policy runs in each search with that argument.
    """
    raise NotImplementedError


@hookspec
def register_routes(gateway: object) -> Mapping[str, object]:
    """Return ASGI applications, keyed by NAME in their path ``/plugins/NAME``.

    The HTTP server checks the token of each request, as for the HTTP API. The scope then contains
    the caller under ``gateway.serve.auth.CALLER``. Applications receive no lifespan events.

    Args:
        gateway: `Gateway` served by ``gateway serve --http``.
    """
    raise NotImplementedError


@hookspec
def register_signals() -> Sequence[object]:
    """Return signals, whose weighted sum is the score of the strategy `auto`.

    Each is a `gateway.search.signals.signal.Signal`, which scores the entities in every search.
    """
    raise NotImplementedError


@hookspec
def register_sources() -> Mapping[str, ApiOpener]:
    """Return functions that open servers, keyed by the key of ``mcp.json`` entries that they serve.

    The gateway reads only the key ``openapi``. Its function returns a server object of the mcp
    package.
    """
    raise NotImplementedError


@hookspec
def register_usage_log() -> Mapping[str, Callable[..., object]]:
    """Return a function that creates the log of calls, under the key ``usage``.

    The log is a `gateway.search.learned.UsageLog`. The function is called when a gateway is
    created, with the keyword arguments ``options`` (`UsageOptions`), ``store`` (`Store`),
    ``telemetry`` (`Telemetry`), ``clock`` (`Clock`) and ``submit`` (`Submit`). The signature omits
    these types, because commands import this module and the import of the types is slow.
    """
    raise NotImplementedError


@hookspec
def register_visibility() -> Mapping[str, Callable[..., object]]:
    """Return the `gateway.catalog.visibility.MakeVisibility` of a gateway, under the key
    ``policies``.

    Only one plugin may have this hook, because two could contradict each other.
    """
    raise NotImplementedError


@hookspec
def register_call_hooks(options: object, store: object, telemetry: object) -> Sequence[object]:
    """Return hooks that run around the calls, reads and changes of one gateway.

    Each is a `gateway.call.hooks.CallHook`. The signatures of hooks omit types with a slow import,
    because commands import this module.

    Args:
        options: `Options` of the gateway.
        store: `Store` of the gateway.
        telemetry: `Telemetry` of the gateway.
    """
    raise NotImplementedError
