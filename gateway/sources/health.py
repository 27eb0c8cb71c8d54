"""Which entities depend on a server that cannot be reached just now; searches may leave them out.

* No server is asked here and no index is built anew: the state of each connection is known already.
* A server that is left out is not found, so nobody uses it and nobody would notice that it is back.
  It is therefore tried again in the background, ever less often, as its breaker says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from gateway.errors import InvalidRequestError
from gateway.runtime.cache import Clock
from gateway.sources.cached import CachedSource
from gateway.sources.registry import Registration
from gateway.sources.virtual import VirtualSource
from gateway.types import Filters

_ANYBODY = Filters()


class Health:
    """The health of the servers of one gateway.

    Args:
        cached: Returns the sources with a connection, by server.
        registrations: Returns what is registered, by server.
        retry_s: Seconds between two tries of a failed server.
        clock: Seconds that only grow.
    """

    def __init__(
        self,
        cached: Callable[[], Mapping[str, CachedSource]],
        registrations: Callable[[], Mapping[str, Registration]],
        *,
        retry_s: float,
        clock: Clock,
    ) -> None:
        self._cached = cached
        self._registrations = registrations
        self._retry_s = retry_s
        self._clock = clock
        self._due: dict[str, float] = {}

    def resolve_filters(self, filters: Filters | None) -> Filters:
        """Return *filters*; if they want only the healthy, with all others named as left out.

        Args:
            filters: None stands for the default ones.

        Raises:
            InvalidRequestError: If they are no `Filters`.
        """
        if filters is None:
            return _ANYBODY
        if not isinstance(filters, Filters):
            raise InvalidRequestError(f"filters must be a Filters(…), got {type(filters).__name__}")
        if not filters.healthy_only:
            return filters
        return replace(filters, without=filters.without | self.find_unhealthy())

    def find_unhealthy(self) -> frozenset[str]:
        """Return the servers that cannot be reached, and the ids of virtual things behind them."""
        sources = dict(self._cached())
        down = {name for name, source in sources.items() if not source.live.healthy}
        self._due = {name: due for name, due in self._due.items() if name in down}
        for name in down:
            self._recheck(name, sources[name])
        return frozenset(down | set(self._aliases(down)))

    def _recheck(self, name: str, source: CachedSource) -> None:
        now = self._clock()
        # Not at once: the failure is fresh.
        if now >= self._due.setdefault(name, now + self._retry_s):
            self._due[name] = now + self._retry_s
            source.invalidate()

    def _aliases(self, down: set[str]) -> set[str]:
        return {
            key
            for registration in self._registrations().values()
            if down & registration.follows and isinstance(registration.source, VirtualSource)
            for key, server in registration.source.behind.items()
            if server in down
        }
