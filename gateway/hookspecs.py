"""The hooks by which plugins add to a gateway.

A plugin is a module or an object with functions of these names, each marked by `hookimpl`. Hooks
run when a gateway or an application is made, or when a person asks for what they register, never
during a search or a call. Two objects with the same order come by name, so the order of
installation decides nothing.

Example:
    from gateway.hookspecs import hookimpl

    @hookimpl
    def register_embedders():
        return {"tiny": TinyEmbedder}
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
    """Name of the module with the ``typer.Typer`` ``app``; imported when the command is typed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IssueSource:
    """A source of issues that want a person's attention."""

    name: str
    find: Callable[[Any, Path | None], Iterable[Any]]
    """Returns values of `gateway.attention.issues.Issue`. Called in a worker thread with the
    newest `IndexBuild` and the folder of evaluation reports, or None."""
    order: int = 0
    """Position among all sources; equal ones go by name."""


@hookspec
def register_commands() -> Mapping[str, PluginCommand]:
    """Return commands, keyed by the word that is typed after ``gateway``.

    A command of this distribution wins over another one of its name.
    """
    raise NotImplementedError


@hookspec
def register_databases() -> Mapping[str, Callable[..., object]]:
    """Return functions that open a `Store` in a database, keyed by the scheme of its address.

    A function gets the whole address, and the `VectorStore` of the host or None. It connects to
    nothing yet. It may raise `ConfigError` and `MissingExtraError`, which never show the address.
    """
    raise NotImplementedError


@hookspec
def register_edge_proposals() -> Mapping[str, Callable[..., object]]:
    """Return the function behind `Gateway.propose_edges`, under the key ``propose``.

    It gets the snapshot, the proposer and the telemetry, and ``servers`` and ``caller`` by name.
    """
    raise NotImplementedError


@hookspec
def register_embedders() -> Mapping[str, Callable[[], Embedder]]:
    """Return functions that make embedders, keyed by the name that a host gives to `Gateway`.

    A function is called when a gateway with that name is made. It may raise `MissingExtraError`.
    """
    raise NotImplementedError


@hookspec
def register_issues() -> Sequence[IssueSource]:
    """Return sources of issues for `Gateway.issues` and ``gateway attention``."""
    raise NotImplementedError


@hookspec
def register_meta_tools(gateway: object) -> Sequence[object]:
    """Return tools that models see beside search and call.

    Each is a `gateway.discovery.meta_tools.MetaTool`.

    Args:
        gateway: The `Gateway` that a chat client, an adapter or a server is made for.
    """
    raise NotImplementedError


@hookspec
def register_query_forms() -> Mapping[str, Callable[[], Correct]]:
    """Return functions that make forms of queries, keyed by the name of the form.

    A search knows one form of plugins, ``corrected``: the query with its spelling corrected. The
    function is called when a gateway is made whose `SearchOptions.spelling` is on.
    """
    raise NotImplementedError


@hookspec
def register_rankings() -> Mapping[str, Callable[[], object]]:
    """Return functions that make ranking policies, keyed by the name that a search gives.

    Each makes a `gateway.search.rank.policies.CatalogRanking`. The function is called when a
    gateway is made; the policy runs in each search that names it.
    """
    raise NotImplementedError


@hookspec
def register_routes(gateway: object) -> Mapping[str, object]:
    """Return ASGI applications, keyed by the name under which ``/plugins/NAME`` serves them.

    The token of a request is checked as for the HTTP API; the scope then has the caller under
    ``gateway.serve.auth.CALLER``. An application gets no lifespan events.

    Args:
        gateway: The `Gateway` that ``gateway serve --http`` serves.
    """
    raise NotImplementedError


@hookspec
def register_signals() -> Sequence[object]:
    """Return terms of the score of the strategy `auto`.

    Each is a `gateway.search.signals.signal.Signal`. It is asked in every search.
    """
    raise NotImplementedError


@hookspec
def register_sources() -> Mapping[str, ApiOpener]:
    """Return functions that open servers, keyed by the key of a server's entry in ``mcp.json``.

    The gateway reads the key ``openapi``. A function makes a server object of the mcp package.
    """
    raise NotImplementedError


@hookspec
def register_usage_log() -> Mapping[str, Callable[..., object]]:
    """Return the function that makes the log of calls, under the key ``usage``.

    The log is a `gateway.search.learned.UsageLog`. The function is called when a gateway is made,
    with the keywords ``options`` (`UsageOptions`), ``store`` (`Store`), ``telemetry``
    (`Telemetry`), ``clock`` (`Clock`) and ``submit`` (`Submit`). The signature does not name these
    types: their import takes long, and commands import this module.
    """
    raise NotImplementedError


@hookspec
def register_visibility() -> Mapping[str, Callable[..., object]]:
    """Return the `gateway.catalog.visibility.MakeVisibility` of a gateway, keyed by ``policies``.

    Only one plugin may have this hook: two that decide would contradict each other.
    """
    raise NotImplementedError


@hookspec
def register_call_hooks(options: object, store: object, telemetry: object) -> Sequence[object]:
    """Return hooks around the calls, reads and changes of one gateway.

    Each is a `gateway.call.hooks.CallHook`. The signatures of hooks do not name types whose import
    takes long, since commands import this module.

    Args:
        options: The `Options` of the gateway.
        store: The `Store` in which the gateway keeps everything.
        telemetry: The `Telemetry` of the gateway.
    """
    raise NotImplementedError
