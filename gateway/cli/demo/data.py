"""The demo as data, for ``--json``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from gateway.chat.events import Called, Requested, Searched
from gateway.cli.demo.run import Outcome, Totals
from gateway.cli.demo.scene import Scene
from gateway.cli.demo.trace import Node
from gateway.cli.jsonable import jsonable


def document(
    scene: Scene, outcomes: Sequence[Outcome], totals: Totals, spans: Sequence[Node] | None
) -> dict[str, object]:
    """Write everything that the demo shows; ``trace`` only if *spans* are given."""
    told: dict[str, object] = {
        "ok": not any(outcome.faults for outcome in outcomes),
        "scripted": scene.scripted,
        "model": scene.model,
        "index": jsonable(scene.report),
        "conversations": [_conversation(outcome) for outcome in outcomes],
        "totals": asdict(totals),
    }
    return told if spans is None else {**told, "trace": jsonable(spans)}


def _conversation(outcome: Outcome) -> dict[str, object]:
    request = outcome.request
    return {
        "title": request.title,
        "language": request.language,
        "request": request.text,
        "searches": [
            {"queries": list(event.queries), "result": jsonable(event.result)}
            for event in outcome.told(Searched)
        ],
        "turns": [
            {
                "turn": event.turn,
                "visible_tools": list(event.tools),
                "found_tools": list(event.proxies),
                "definition_tokens_estimated": event.definition_tokens,
            }
            for event in outcome.told(Requested)
        ],
        "calls": [_call(event) for event in outcome.told(Called)],
        "answer": outcome.answer,
        "expected_tool": request.expected_tool,
        "expected_file": request.expected_file or None,
        "duration_s": outcome.duration_s,
        "ok": not outcome.faults,
        "faults": list(outcome.faults),
    }


def _call(event: Called) -> dict[str, object]:
    return {
        "tool": event.tool,
        "tool_id": event.result.tool_id if event.result else None,
        "arguments": jsonable(event.arguments),
        "is_error": event.result.is_error if event.result else True,
        "text": event.result.text if event.result else "",
        "error": event.error,
    }
