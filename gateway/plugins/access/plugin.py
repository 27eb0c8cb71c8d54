"""Plugin ``access``: policies, limits, redaction and the audit log."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gateway.hookspecs import hookimpl


@hookimpl
def register_visibility() -> Mapping[str, Callable[..., object]]:
    """Register the policies."""
    from gateway.plugins.access.policies import Policies  # noqa: PLC0415  (it needs numpy)

    return {"policies": Policies}


@hookimpl
def register_call_hooks(options: Any, store: Any, telemetry: Any) -> Sequence[object]:
    """Register the access gate."""
    from gateway.plugins.access.gate import access_gate  # noqa: PLC0415  (its import takes long)

    return [access_gate(options, store, telemetry)]
