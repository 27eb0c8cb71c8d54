"""The plugin ``usage``: it notes calls and searches, and tells what they say of tools."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gateway.hookspecs import hookimpl


@hookimpl
def register_signals() -> Mapping[str, Callable[..., object]]:
    """Register the log of calls."""
    return {"usage": _tracker}


def _tracker(*, store: Any, **parts: Any) -> object:
    from gateway.plugins.usage.history import UsageTracker  # noqa: PLC0415  (only a gateway needs it, no command)
    from gateway.plugins.usage.tables import call_log_of  # noqa: PLC0415  (likewise)

    return UsageTracker(call_log_of(store), **parts)
