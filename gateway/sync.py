"""The blocking twin of `Gateway`. Delegates; decides nothing."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, Self, TypeVar

from gateway.catalog.catalog import Catalog
from gateway.gateway import Gateway
from gateway.search.resources import ResourceLibrary

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


class _Blocking(Protocol):
    gateway: Gateway


def _blocking(
    owner: Callable[[Gateway], T], method: Callable[Concatenate[T, P], Coroutine[Any, Any, R]]
) -> Callable[Concatenate[_Blocking, P], R]:
    """Return the blocking twin of *method*, with its signature and its docstring.

    Args:
        owner: Returns the part of a gateway whose method it is.
        method: Awaited on the gateway's background loop.
    """

    @wraps(method)
    def call(self: _Blocking, /, *args: P.args, **named: P.kwargs) -> R:
        return self.gateway.bridge.call(lambda: method(owner(self.gateway), *args, **named))

    return call


def _itself(gateway: Gateway) -> Gateway:
    return gateway


def _catalog(gateway: Gateway) -> Catalog:
    return gateway.catalog


def _library(gateway: Gateway) -> ResourceLibrary:
    return gateway.library


class SyncCatalog:
    """A `Catalog` for code without an event loop.

    Args:
        gateway: The gateway of the catalog.
    """

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway

    put = _blocking(_catalog, Catalog.put)
    remove = _blocking(_catalog, Catalog.remove)
    entries = _blocking(_catalog, Catalog.entries)
    get = _blocking(_catalog, Catalog.get)
    list = _blocking(_catalog, Catalog.list)
    tags = _blocking(_catalog, Catalog.tags)


class SyncLibrary:
    """A `ResourceLibrary` for code without an event loop.

    Args:
        gateway: The gateway of the resources and prompts.
    """

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway

    entities = _blocking(_library, ResourceLibrary.entities)
    read = _blocking(_library, ResourceLibrary.read)
    prompt = _blocking(_library, ResourceLibrary.prompt)
    complete = _blocking(_library, ResourceLibrary.complete)


class SyncGateway:
    """A `Gateway` for code without an event loop, on any thread.

    Args:
        gateway: The one that does the work; it may serve async callers at the same time.

    Every method raises what its async twin raises, and RuntimeError on the gateway's own loop.
    """

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway

    def __repr__(self) -> str:
        """Return the name of the class and its gateway."""
        return f"SyncGateway({self.gateway!r})"

    @property
    def catalog(self) -> SyncCatalog:
        """The blocking twin of `Gateway.catalog`."""
        return SyncCatalog(self.gateway)

    @property
    def library(self) -> SyncLibrary:
        """The blocking twin of `Gateway.library`."""
        return SyncLibrary(self.gateway)

    search = _blocking(_itself, Gateway.search)
    next_steps = _blocking(_itself, Gateway.next_steps)
    list_tools = _blocking(_itself, Gateway.list_tools)
    invoke = _blocking(_itself, Gateway.invoke)
    read = _blocking(_itself, Gateway.read)
    prompt = _blocking(_itself, Gateway.prompt)
    remove_server = _blocking(_itself, Gateway.remove_server)
    reload = _blocking(_itself, Gateway.reload)
    refresh = _blocking(_itself, Gateway.refresh)
    report = _blocking(_itself, Gateway.report)
    export_graph = _blocking(_itself, Gateway.export_graph)
    graph = _blocking(_itself, Gateway.graph)
    propose_edges = _blocking(_itself, Gateway.propose_edges)

    def close(self) -> None:
        """See `Gateway.close`."""
        self.gateway.close()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Close the gateway."""
        self.close()
