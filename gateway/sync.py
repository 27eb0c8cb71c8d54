"""The blocking twin of `Gateway`. Delegates; decides nothing."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar

from gateway.call.resources import ResourceLibrary
from gateway.catalog.catalog import Catalog
from gateway.gateway import Gateway
from gateway.runtime.background_loop import Bridge

P = ParamSpec("P")
R = TypeVar("R")
Core_co = TypeVar("Core_co", covariant=True)


class _Twin(Generic[Core_co]):
    """The blocking twin of *core*, whose methods are awaited on the loop behind *bridge*."""

    def __init__(self, core: Core_co, bridge: Bridge) -> None:
        self._core = core
        self._bridge = bridge


def _blocking(
    method: Callable[Concatenate[Core_co, P], Coroutine[Any, Any, R]],
) -> Callable[Concatenate[_Twin[Core_co], P], R]:
    """Return the blocking twin of *method*, with its signature and its docstring."""

    @wraps(method)
    def call(self: _Twin[Core_co], /, *args: P.args, **named: P.kwargs) -> R:
        return self._bridge.call(lambda: method(self._core, *args, **named))

    return call


class SyncCatalog(_Twin[Catalog]):
    """A `Catalog` for code without an event loop."""

    put = _blocking(Catalog.put)
    remove = _blocking(Catalog.remove)
    govern = _blocking(Catalog.govern)
    change = _blocking(Catalog.change)
    use_of = _blocking(Catalog.use_of)
    entries = _blocking(Catalog.entries)
    get = _blocking(Catalog.get)
    list = _blocking(Catalog.list)
    tags = _blocking(Catalog.tags)


class SyncLibrary(_Twin[ResourceLibrary]):
    """A `ResourceLibrary` for code without an event loop."""

    entities = _blocking(ResourceLibrary.entities)
    read = _blocking(ResourceLibrary.read)
    prompt = _blocking(ResourceLibrary.prompt)
    complete = _blocking(ResourceLibrary.complete)


class SyncGateway(_Twin[Gateway]):
    """A `Gateway` for code without an event loop, on any thread.

    Args:
        gateway: The one that does the work; it may serve async callers at the same time.

    Every method raises what its async twin raises, and RuntimeError on the gateway's own loop.
    """

    def __init__(self, gateway: Gateway) -> None:
        super().__init__(gateway, gateway.bridge)
        self.gateway = gateway

    def __repr__(self) -> str:
        """Return the name of the class and its gateway."""
        return f"SyncGateway({self.gateway!r})"

    @property
    def catalog(self) -> SyncCatalog:
        """The blocking twin of `Gateway.catalog`."""
        return SyncCatalog(self.gateway.catalog, self.gateway.bridge)

    @property
    def library(self) -> SyncLibrary:
        """The blocking twin of `Gateway.library`."""
        return SyncLibrary(self.gateway.library, self.gateway.bridge)

    search = _blocking(Gateway.search)
    next_steps = _blocking(Gateway.next_steps)
    list_tools = _blocking(Gateway.list_tools)
    invoke = _blocking(Gateway.invoke)
    read = _blocking(Gateway.read)
    prompt = _blocking(Gateway.prompt)
    remove_server = _blocking(Gateway.remove_server)
    reload = _blocking(Gateway.reload)
    refresh = _blocking(Gateway.refresh)
    report = _blocking(Gateway.report)
    snapshot = _blocking(Gateway.snapshot)
    export_graph = _blocking(Gateway.export_graph)
    graph = _blocking(Gateway.graph)
    propose_edges = _blocking(Gateway.propose_edges)
    issues = _blocking(Gateway.issues)
    approve = _blocking(Gateway.approve)
    accept = _blocking(Gateway.accept)
    disable = _blocking(Gateway.disable)
    retry = _blocking(Gateway.retry)
    sign_in = _blocking(Gateway.sign_in)

    def close(self) -> None:
        """See `Gateway.close`."""
        self.gateway.close()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Close the gateway."""
        self.close()
