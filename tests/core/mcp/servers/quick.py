"""Two well-behaved servers in raw JSON-RPC: ``quick.py clock`` and ``quick.py plain RECORD``.

They start in a twentieth of the processor time of the SDK. The clock has the tools of
``mcp-server-time``. The other server is that of `plain`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

Json = dict[str, Any]

FRESH: Json = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
READ_ONLY: Json = {"annotations": {"readOnlyHint": True, "destructiveHint": False}}


def tool(name: str, description: str, **parameters: str) -> Json:
    properties = {key: {"type": "string", "description": text} for key, text in parameters.items()}
    schema: Json = {"type": "object", "properties": properties, "required": [*parameters]}
    return {"name": name, "description": description, "inputSchema": schema}


CLOCK = [
    tool(
        "get_current_time",
        "Get the current time in a time zone.",
        timezone="Name of the zone, such as 'Europe/London'.",
    )
    | READ_ONLY,
    tool(
        "convert_time",
        "Convert a time between time zones.",
        source_timezone="Zone of the time.",
        time="Hour and minute, such as 16:30.",
        target_timezone="Zone to convert it to.",
    )
    | READ_ONLY,
]
PLAIN = [
    tool("echo", "Say it again.", text="What to say.") | {"annotations": {"readOnlyHint": True}},
    *(
        {"name": name, "description": description, "inputSchema": {"type": "object"}}
        for name, description in (
            ("add", "Add two numbers."),
            ("fail", "Fail."),
            ("wait", "Wait for ever."),
        )
    ),
]


def clock(_name: str, given: Json) -> Json:
    target = ZoneInfo(given.get("target_timezone") or given["timezone"])
    time = datetime.now(UTC)
    if "time" in given:
        hour, minute = map(int, given["time"].split(":"))
        time = time.astimezone(ZoneInfo(given["source_timezone"])).replace(hour=hour, minute=minute)
    data = {"timezone": target.key, "datetime": time.astimezone(target).isoformat()}
    return {"result": {**text(json.dumps(data)), "structuredContent": data}}


def plain(name: str, given: Json) -> Json | None:
    """Return the answer of the tool *name*; None for no answer."""
    match name:
        case "echo" if isinstance(given.get("text"), str):
            return {"result": text(given["text"])}
        case "add":
            data = {"sum": given["a"] + given["b"]}
            return {"result": {**text(json.dumps(data)), "structuredContent": data}}
        case "fail":
            return {"result": {**text("ValueError: no"), "isError": True}}
        case "wait":
            note("started")
            return None
        case _:
            return {"error": {"code": -32602, "message": f"cannot call {name}"}}


def text(content: str) -> Json:
    return {**FRESH, "content": [{"type": "text", "text": content}]}


def note(word: str) -> None:
    with Path(sys.argv[2]).open("a", encoding="utf-8") as lines:
        lines.write(word + "\n")


def respond(method: str, params: Json) -> Json | None:
    tools, call = SERVERS[sys.argv[1]]
    match method:
        case "server/discover":
            offered = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
            return {"result": {**FRESH, **offered}}
        case "tools/list":
            return {"result": {**FRESH, "tools": tools}}
        case "tools/call":
            return call(params["name"], params.get("arguments") or {})
        case _:
            return {"error": {"code": -32601, "message": "no such method"}}


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if message["method"] == "notifications/cancelled":
            # Only a waiting call is still unanswered.
            note("ended")
        if "id" in message and (answer := respond(message["method"], message.get("params") or {})):
            whole = {"jsonrpc": "2.0", "id": message["id"], **answer}
            sys.stdout.write(json.dumps(whole) + "\n")
            sys.stdout.flush()


SERVERS: dict[str, tuple[list[Json], Callable[[str, Json], Json | None]]] = {
    "clock": (CLOCK, clock),
    "plain": (PLAIN, plain),
}

main()
