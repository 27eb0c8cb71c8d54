"""Plugin ``usage``: records calls and searches, and computes statistics and signals."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gateway.errors import ConfigError
from gateway.hookspecs import hookimpl
from gateway.options import UsageOptions


@hookimpl
def register_usage_log() -> Mapping[str, Callable[..., object | None]]:
    """Register the opener of the call log."""
    return {"usage": _tracker}


def _tracker(*, store: Any, options: UsageOptions, **parts: Any) -> object | None:
    from gateway.plugins.usage.history import UsageTracker  # noqa: PLC0415  (only a gateway needs it, no command)
    from gateway.plugins.usage.tables import call_log_of  # noqa: PLC0415  (likewise)

    try:
        log = call_log_of(store)
    except ConfigError:
        if options.record or options.reads:
            raise
        return None
    return UsageTracker(log, options=options, **parts)
