"""Hooks through which plugins extend a gateway.

A plugin is a module or an object with functions of these names, each decorated with `hookimpl`.
Hooks run when a gateway or an application is created, or when a person requests the registered
objects, but not in searches and calls. Objects with the same order are sorted by name.

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
    """One sentence for ``gateway --help``."""
    module: str
    """Name of a module with a ``typer.Typer`` called ``app``, imported when the command runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IssueSource:
    """Source of issues: problems that need the attention of a person."""

    name: str
    find: Callable[[Any, Path | None], Iterable[Any]]
    """Function called in a worker thread with the newest `IndexBuild` and the folder of evaluation
    reports (or None). It returns `gateway.attention.issues.Issue` values."""
    order: int = 0
    """Position of this source, lowest first. Sources with the same position are sorted by name."""


@hookspec
def register_commands() -> Mapping[str, PluginCommand]:
    """Return commands, keyed by the word after ``gateway`` on the command line.

    Commands of this package take precedence.
    """
    raise NotImplementedError


@hookspec
def register_databases() -> Mapping[str, Callable[..., object]]:
    """Return functions that open a `Store` in a database, keyed by the scheme of its address.

    A function receives the whole address, and the host's `VectorStore` or None. It may raise
    `ConfigError` and `MissingExtraError`, without the address in the message. It does not connect
    yet.
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

    A function is called when a gateway is created. It may raise `MissingExtraError`.
    """
    raise NotImplementedError


@hookspec
def register_issues() -> Sequence[IssueSource]:
    """Return sources of issues for `Gateway.issues` and ``gateway attention``."""
    raise NotImplementedError


@hookspec
def register_meta_tools(gateway: object) -> Sequence[object]:
    """Return further `gateway.discovery.meta_tools.MetaTool` objects, besides search and call.

    Args:
        gateway: `Gateway` with the tools.
    """
    raise NotImplementedError


@hookspec
def register_query_forms() -> Mapping[str, Callable[[], Correct]]:
    """Return functions that create a form of queries, keyed by the name of the form.

    Searches use only the form ``corrected``. Its function is called when a gateway with
    `SearchOptions.spelling` is created, and returns a function that corrects the spelling.
    """
    raise NotImplementedError


@hookspec
def register_rankings() -> Mapping[str, Callable[[], object]]:
    """Return functions that create ranking policies, keyed by the ``ranking=`` of searches.

    A function is called when a gateway is created. It returns a
    `gateway.search.rank.policies.CatalogRanking`, which runs in each search with that argument.
    """
    raise NotImplementedError


@hookspec
def register_routes(gateway: object) -> Mapping[str, object]:
    """Return ASGI applications, keyed by NAME in their path ``/plugins/NAME``.

    The HTTP server checks the token of each request, then puts the caller into the scope under
    ``gateway.serve.auth.CALLER``. Applications receive no lifespan events.

    Args:
        gateway: `Gateway` of the server.
    """
    raise NotImplementedError


@hookspec
def register_signals() -> Sequence[object]:
    """Return `gateway.search.signals.signal.Signal` objects, which score entities in every search.

    The weighted sum of all signals is the score of the strategy ``auto``.
    """
    raise NotImplementedError


@hookspec
def register_sources() -> Mapping[str, ApiOpener]:
    """Return functions that open servers, keyed by the key of their entries in ``mcp.json``.

    Only the key ``openapi`` is read. Its function returns a server object of the mcp package.
    """
    raise NotImplementedError


@hookspec
def register_usage_log() -> Mapping[str, Callable[..., object]]:
    """Return a function that creates the log of calls, under the key ``usage``.

    The log is a `gateway.search.learned.UsageLog`. The function is called when a gateway is
    created, with the keyword arguments ``options`` (`UsageOptions`), ``store`` (`Store`),
    ``telemetry`` (`Telemetry`), ``clock`` (`Clock`) and ``submit`` (`Submit`).
    """
    raise NotImplementedError


@hookspec
def register_visibility() -> Mapping[str, Callable[..., object]]:
    """Return a `gateway.catalog.visibility.MakeVisibility`, under the key ``policies``.

    Only one plugin may have this hook.
    """
    raise NotImplementedError


@hookspec
def register_call_hooks(options: object, store: object, telemetry: object) -> Sequence[object]:
    """Return `gateway.call.hooks.CallHook` objects, which run around calls, reads and changes.

    The annotations are ``object``, because commands import this module and the types load slowly.

    Args:
        options: `Options` of the gateway.
        store: `Store` of the gateway.
        telemetry: `Telemetry` of the gateway.
    """
    raise NotImplementedError
