"""What was discovered, or came of a provisioning -> JSON for a model: short, no secrets. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping

from gateway.provision.discover import Discovered, FoundTool
from gateway.provision.plan import written
from gateway.provision.provisioner import Provisioned
from gateway.runtime.text import plain

_DIGITS = 4


def discovered(found: Discovered, *, max_chars: int) -> dict[str, object]:
    """Write servers and tools with their schemas; of a suspicious tool what a call needs alone.

    Args:
        found: What there is.
        max_chars: About what all tools together may take; the last ones are left out, and
            ``omitted`` counts them.
    """
    tools: list[dict[str, object]] = []
    room = max_chars
    for each in found.tools:
        told = _tool(each)
        room -= len(json.dumps(told, ensure_ascii=False))
        if room < 0 and tools:
            break
        tools.append(told)
    servers = [
        _without_none(
            {
                "name": each.name,
                "state": each.state,
                "tools": each.tools,
                "confidence": _rounded(each.confidence),
            }
        )
        for each in found.servers
    ]
    return {"servers": servers, "tools": tools, "omitted": len(found.tools) - len(tools)}


def provisioned(result: Provisioned) -> dict[str, object]:
    """Write the outcome, who was considered, how it was judged and what would run, or did."""
    told: dict[str, object] = {"outcome": result.outcome, "reason": result.reason}
    if result.outcome == "local":
        told["tools"] = [each.id for each in result.local]
    if result.candidates:
        told["candidates"] = [
            {
                "name": each.entry.name,
                "description": each.entry.description,
                "confidence": _rounded(each.confidence),
            }
            for each in result.candidates
        ]
    if result.plan is not None:
        plan = result.plan
        told["server"] = plan.entry.name
        told["gates"] = {gate.name: f"{gate.verdict}: {gate.reason}" for gate in result.gates}
        told["install"] = [written(each) for each in plan.install]
        told["launch"] = plan.url or written(plan.launch)
    if result.outcome == "installed":
        told["tools"] = [each.id for each in result.tools]
    return told


def _tool(tool: FoundTool) -> dict[str, object]:
    return _without_none(
        {
            "id": tool.id,
            "name": tool.name,
            "server": tool.server,
            "state": tool.state,
            "confidence": _rounded(tool.confidence),
            "score": _rounded(tool.score),
            **(_withheld(tool) if tool.suspicious else _read(tool)),
        }
    )


def _read(tool: FoundTool) -> dict[str, object]:
    return {"description": tool.description, "schema": tool.schema}


def _withheld(tool: FoundTool) -> dict[str, object]:
    required = tool.schema.get("required")
    needs = plain(required if isinstance(required, list | tuple) else ())
    return {"suspicious": True, "needs": needs}


def _rounded(number: float | None) -> float | None:
    return None if number is None else round(number, _DIGITS)


def _without_none(told: Mapping[str, object]) -> dict[str, object]:
    return {key: value for key, value in told.items() if value is not None}
