"""Blocking versions of `Gateway`, `Catalog` and `ResourceLibrary`."""

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


class _Blocking(Generic[Core_co]):
    """Base class of the blocking versions, whose methods run on the loop of *bridge*."""

    def __init__(self, core: Core_co, bridge: Bridge) -> None:
        self._core = core
        self._bridge = bridge


def _blocking(
    method: Callable[Concatenate[Core_co, P], Coroutine[Any, Any, R]],
) -> Callable[Concatenate[_Blocking[Core_co], P], R]:
    """Return a blocking version of *method*."""

    @wraps(method)
    def call(self: _Blocking[Core_co], /, *args: P.args, **named: P.kwargs) -> R:
        return self._bridge.call(lambda: method(self._core, *args, **named))

    return call


class SyncCatalog(_Blocking[Catalog]):
    """A `Catalog` with blocking methods."""

    put = _blocking(Catalog.put)
    remove = _blocking(Catalog.remove)
    govern = _blocking(Catalog.govern)
    change = _blocking(Catalog.change)
    use_of = _blocking(Catalog.use_of)
    entries = _blocking(Catalog.entries)
    get = _blocking(Catalog.get)
    list = _blocking(Catalog.list)
    tags = _blocking(Catalog.tags)


class SyncLibrary(_Blocking[ResourceLibrary]):
    """A `ResourceLibrary` with blocking methods."""

    entities = _blocking(ResourceLibrary.entities)
    read = _blocking(ResourceLibrary.read)
    prompt = _blocking(ResourceLibrary.prompt)
    complete = _blocking(ResourceLibrary.complete)


class SyncGateway(_Blocking[Gateway]):
    """A `Gateway` with blocking methods, for any thread.

    The methods raise the errors of `Gateway`, and RuntimeError on the gateway's own loop.

    Args:
        gateway: Gateway that does the work. It can serve async callers too.

    Example:
        >>> from gateway import Gateway, SyncGateway
        >>> core = Gateway()
        >>> tool_id = core.add_tool(lambda: "hello", name="greet", description="Greet.")
        >>> with SyncGateway(core) as gateway:
        ...     text = gateway.invoke(tool_id).text
        >>> text
        'hello'
    """

    def __init__(self, gateway: Gateway) -> None:
        super().__init__(gateway, gateway.bridge)
        self.gateway = gateway

    def __repr__(self) -> str:
        return f"SyncGateway({self.gateway!r})"

    @property
    def catalog(self) -> SyncCatalog:
        """Blocking version of `Gateway.catalog`."""
        return SyncCatalog(self.gateway.catalog, self.gateway.bridge)

    @property
    def library(self) -> SyncLibrary:
        """Blocking version of `Gateway.library`."""
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
        """Close the gateway."""
        self.gateway.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()
