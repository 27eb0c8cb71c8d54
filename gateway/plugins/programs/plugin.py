"""Plugin ``programs``: a meta-tool that runs a model's programs over the found tools."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gateway.hookspecs import hookimpl


@hookimpl
def register_meta_tools(gateway: Any) -> Sequence[object]:
    """Register the meta-tool ``run_program``, if `DiscoveryOptions.programs` is on."""
    options = gateway.options.discovery
    if not options.programs:
        return ()
    from gateway.plugins.programs.runner import ProgramRunner, program_tool  # noqa: PLC0415  (pydantic)

    return (program_tool(ProgramRunner(gateway), options.run_name),)
