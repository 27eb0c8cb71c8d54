"""Plugin ``rankings``: ranking policies compatible with registries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from gateway.hookspecs import hookimpl


@hookimpl
def register_rankings() -> Mapping[str, Callable[[], object]]:
    """Register the ranking policies ``hybrid``, ``weighted`` and ``legacy``."""
    return {name: partial(_make_policy, name) for name in ("hybrid", "weighted", "legacy")}


def _make_policy(name: str) -> object:
    from gateway.plugins.rankings.policies import POLICIES  # noqa: PLC0415  (only a gateway needs it, no command)

    return POLICIES[name]
