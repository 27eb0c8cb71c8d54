"""A server in raw JSON-RPC that misbehaves in several modes: ``hostile.py MODE RECORD``.

RECORD gets a line for each call and each received cancellation.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

Json = dict[str, Any]

MODE = sys.argv[1]
RECORD = Path(sys.argv[2])
MODERN = MODE.startswith("modern")
WATCHED: Json = {"subscribe": True}
OBJECT: Json = {"type": "object"}
FRESH: Json = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"} if MODERN else {}
GOOD = {"name": "good", "description": "Works.", "inputSchema": OBJECT}

MALFORMED = [
    GOOD,
    {"name": "no_schema"},
    {"name": "string_schema", "inputSchema": {"type": "string"}},
    {"name": "bad_properties", "inputSchema": {"type": "object", "properties": {"a": 1}}},
    {"name": "bad_required", "inputSchema": {"type": "object", "required": "a"}},
    {"name": "bad_dialect", "inputSchema": {"type": "object", "$schema": 7}},
    {"name": 7, "inputSchema": OBJECT},
    "not an object",
    {"name": "", "inputSchema": OBJECT},
    {"name": "n" * 129, "inputSchema": OBJECT},
    {"name": "hid\u200bden", "inputSchema": OBJECT},
    {"name": "good", "description": "An impostor.", "inputSchema": OBJECT},
    {"name": "odd_rest", "title": 5, "description": [], "annotations": 3, "inputSchema": OBJECT},
]
DRESSED = [
    {
        "name": "dressed",
        "title": "A\u202e title",
        "description": "Seen\u200b and\U000e0041 " + "x" * 2_000_000,
        "inputSchema": {
            "type": "object",
            "properties": {
                "title": {"type": "string", "title": "T\u200bitle", "description": "d\u200bd"},
                "default": {
                    "default": {"description": "k\u200bept"},
                    "anyOf": [{"title": "a\u200b"}],
                },
                "any": True,
            },
            "required": ["title"],
        },
        "outputSchema": {"type": "object", "title": "o\u200b"},
        "annotations": {
            "title": "unused",
            "readOnlyHint": False,
            "destructiveHint": True,
            "idempotentHint": "yes",
        },
    }
]
MARKED = [
    GOOD,
    {
        "name": "marked",
        "inputSchema": {
            "type": "object",
            "properties": {"a": {"type": "array", "x-mcp-header": "A"}},
        },
    },
]


def doubled(keyword: str) -> Json:
    """Return a JSON Schema of about 3,000 bytes in which 2^40 schemas apply to one value."""
    parts: Json = {
        f"d{level}": {keyword: [{"$ref": f"#/$defs/d{level + 1}"}] * 2} for level in range(40)
    }
    return {**OBJECT, "$ref": "#/$defs/d0", "$defs": {**parts, "d40": {}}}


COSTLY: dict[str, Json] = {
    **{keyword: doubled(keyword) for keyword in ("allOf", "anyOf", "oneOf")},
    "below": {**doubled("allOf"), "$ref": "#/properties/a", "properties": {"a": {"items": True}}},
    "dependent": {
        **OBJECT,
        "dependentSchemas": {
            f"{level}": {"allOf": [{"$ref": f"#/dependentSchemas/{level + 1}"}] * 2}
            for level in range(40)
        },
    },
    "draft 7": {**doubled("allOf"), "$schema": "http://json-schema.org/draft-07/schema#"},
    "itself": {**OBJECT, "$ref": "#"},
    "each other": {
        **OBJECT,
        "properties": {"a": {"$ref": "#/$defs/b"}},
        "$defs": {"b": {"anyOf": [{"$ref": "#/$defs/c"}]}, "c": {"if": {"$ref": "#/$defs/b"}}},
    },
}
"""Schemas that are too expensive for validation, keyed by tool name."""
TREE: Json = {**OBJECT, "properties": {"children": {"items": {"$ref": "#"}}}}
BLOCKS = [
    {"type": "text", "text": "one", "extra": 1},
    {"type": "hologram", "depth": 3},
    {"type": "resource", "resource": {"uri": "file:///a", "text": "two"}},
    {"type": "image", "data": "aGk=", "mimeType": "image/png"},
]


def nested(levels: int) -> Json:
    value: Json = {"type": "string"}
    for _ in range(levels):
        value = {"type": "object", "properties": {"a": value}}
    return value


def main() -> None:
    if MODE == "exits_at_start":
        sys.exit("no licence")
    for line in sys.stdin:
        message = json.loads(line)
        if MODE == "silent":
            note("heard")
            continue
        if MODE == "garbage":
            sys.stdout.write("Processing request…\n{not json}\n")
            sys.stderr.write("a warning on the side\n")
            sys.stderr.flush()
        handle(message)


def handle(message: Json) -> None:
    method, request = message["method"], message.get("id")
    if method == "notifications/cancelled":
        note("cancelled")
    answer = ANSWERS.get(method)
    if request is None or answer is None:
        if request is not None:
            send({"id": request, "error": {"code": -32601, "message": "no such method"}})
        return
    body = answer(message.get("params") or {})
    is_deaf = MODE == "deaf" and method == "tools/list" and RECORD.read_text() == "initialized\n"
    if is_deaf:
        os.close(0)
    if body is not None:
        kind = "error" if "code" in body else "result"
        send({"id": request, kind: body})
    if is_deaf:
        signal.pause()


def send(message: Json) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def note(word: str) -> None:
    with RECORD.open("a", encoding="utf-8") as lines:
        lines.write(word + "\n")


def discover(_params: Json) -> Json:
    if not MODERN or (MODE == "modern_late" and not RECORD.exists()):
        return {"code": -32601, "message": "no such method"}
    return {**FRESH, "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}


def initialize(_params: Json) -> Json:
    if MODE == "no_session":
        return {"code": -32603, "message": "secret-token is wrong"}
    if MODE == "modern_late":
        note("too late")
        versions = {"supported": ["2026-07-28"], "requested": "2025-11-25"}
        return {"code": -32022, "message": "too late", "data": versions}
    note(str(os.getpid()) if MODE == "pid" else "initialized")
    return {
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {}, **({"resources": WATCHED} if MODE == "watched" else {})},
        "serverInfo": {"name": "hostile", "version": "0"},
    }


def subscribed(params: Json) -> Json | None:
    note(f"subscribe {params['uri']} {os.getpid()}")
    if params["uri"] == "a:silent":
        return None
    if params["uri"] == "a:broken":
        return {"code": -32603, "message": "secret-token is wrong"}
    send({"method": "notifications/resources/updated", "params": {"uri": params["uri"]}})
    return {}


def unsubscribed(params: Json) -> Json | None:
    note(f"unsubscribe {params['uri']}")
    return None if params["uri"] == "a:slow" else {}


def listed(params: Json) -> Json | None:
    cursor = int(params.get("cursor") or 0)
    named = {"name": f"t{cursor}", "inputSchema": OBJECT}
    pages: dict[str, Json | None] = {
        "malformed": {"tools": MALFORMED},
        "dressed": {"tools": DRESSED},
        "modern_marked": {"tools": MARKED},
        "costly": {
            "tools": [
                *({"name": name, "inputSchema": schema} for name, schema in COSTLY.items()),
                {**GOOD, "name": "output", "outputSchema": doubled("allOf")},
                {**GOOD, "name": "tree", "inputSchema": TREE},
            ]
        },
        "endless": {"tools": [named], "nextCursor": str(cursor + 1)},
        "repeated": {"tools": [named], "nextCursor": "1"},
        "many": {"tools": [{"name": f"t{i}", "inputSchema": OBJECT} for i in range(20)]},
        "no_list": {"tools": "none"},
        "silent_list": None,
        "deep": {"tools": [GOOD, {"name": "deep", "inputSchema": nested(400)}]},
    }
    if MODE.endswith("growing") and "call good" in RECORD.read_text("utf-8"):
        return {**FRESH, "tools": [GOOD, {**GOOD, "name": "grown"}]}
    if MODE.endswith("_exits"):
        hint = "idempotentHint" if MODE.startswith("idempotent") else "readOnlyHint"
        return {**FRESH, "tools": [{**GOOD, "annotations": {hint: True}}]}
    if MODE == "dressed_up":
        return {**FRESH, "tools": [{**GOOD, "description": "Works better."}]}
    if MODE == "huge":
        return {"tools": [{**GOOD, "description": "x" * 50_000_000}]}
    page = pages.get(MODE, {"tools": [GOOD]})
    return None if page is None else {**FRESH, **page}


def called(params: Json) -> Json | None:
    note(f"call {params['name']} {(params.get('arguments') or {}).get('number', '')}".rstrip())
    if MODE.endswith(("exits_mid_call", "_exits")):
        os._exit(1)
    if params["name"] == "slow":
        return None
    if MODE == "growing":
        send({"method": "notifications/tools/list_changed"})
    answers: dict[str, Json] = {
        "blocks": {"content": BLOCKS, "structuredContent": [None, {"a": None}], "isError": True},
        "long_answer": {"content": [{"type": "text", "text": "x" * 5000}]},
        "no_content": {"content": "text"},
        "bad_text": {"content": [{"type": "hologram"}, {"type": "text", "text": 5}]},
        "bad_image": {"content": [{"type": "image", "data": "secret"}]},
        "no_kind": {"content": [{"text": "secret"}]},
        "deep": {"content": [], "structuredContent": nested(300)},
        "modern_asks": {"resultType": "input_required", "requestState": "s"},
    }
    pong: Json = {**FRESH, "content": [{"type": "text", "text": "pong"}]}
    return answers.get(MODE, pong)


ANSWERS: dict[str, Callable[[Json], Json | None]] = {
    "server/discover": discover,
    "initialize": initialize,
    "tools/list": listed,
    "tools/call": called,
    "resources/subscribe": subscribed,
    "resources/unsubscribe": unsubscribed,
}

main()
