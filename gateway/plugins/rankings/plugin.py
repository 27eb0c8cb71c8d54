"""Plugin ``rankings``: ranking policies compatible with registries."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gateway.hookspecs import hookimpl


@hookimpl
def register_rankings() -> Mapping[str, Callable[[], object]]:
    """Register the ranking policies ``hybrid``, ``weighted`` and ``legacy``."""
    return {"hybrid": _hybrid, "weighted": _weighted, "legacy": _legacy}


def _hybrid() -> object:
    from gateway.plugins.rankings.policies import Hybrid  # noqa: PLC0415  (only a gateway needs it, no command)

    return Hybrid()


def _weighted() -> object:
    from gateway.plugins.rankings.policies import Weighted  # noqa: PLC0415  (likewise)

    return Weighted()


def _legacy() -> object:
    from gateway.plugins.rankings.policies import Legacy  # noqa: PLC0415  (likewise)

    return Legacy()
