"""A server in raw JSON-RPC whose texts contain every kind of invisible character.

JSON escapes each of them, also unpaired surrogates.
"""

from __future__ import annotations

import json
import sys
import unicodedata
from typing import Any

Json = dict[str, Any]

KINDS = [
    *(chr(at) for at in range(0xD800) if unicodedata.category(chr(at)) in {"Cc", "Cf"}),
    *"\ud800\udfff\ue000\uf8ff\ufeff\ufff9\u034f\u115f\u1160\u17b4\u180b\u2028\u2029\u2065\u3164",
    *"\ufe00\ufe0f\uffa0\ufdd0\uffff",
    *(chr(at) for at in range(0xE0000, 0xE0200, 7)),
    *"\U0001d173\U000f0000\U0010ffff\U0001fffe",
]
"""Control, format, private, unassigned and ignorable characters, and unpaired surrogates."""
KINDS = [kind for kind in KINDS if kind not in "\n\t"]
ODD = "marked " + "".join(f"x{kind}" for kind in KINDS) + "\ufe01\ufe02" * 20 + "\u200d\u200c" * 20
"""Value of every text of the server."""
SCHEMA: Json = {
    "type": "object",
    "title": ODD,
    "properties": {
        "a": {"type": "string", "description": ODD, "default": ODD, "examples": [{"b": ODD}]},
        "b": {"enum": [ODD], "x-unknown": {"c": [ODD]}},
    },
}
HINTS: Json = {"title": ODD, "lastModified": ODD}
TOOL: Json = {
    "title": ODD,
    "description": ODD,
    "inputSchema": SCHEMA,
    "outputSchema": SCHEMA,
    "annotations": HINTS,
}
LISTED: Json = {
    "title": ODD,
    "description": ODD,
    "mimeType": ODD,
    "annotations": HINTS,
    "icons": [{"src": ODD}],
    "_meta": {"note": ODD},
}
HIDDEN: Json = {"type": "object", "properties": {"a\u200b": {}}}
NAMES = ("call", "refuse", "ask")
CONTENT: Json = {"uri": "a://notes", "text": ODD, "_meta": {"note": ODD}}
BLOCKS: list[Json] = [
    {"type": "text", "text": ODD, "annotations": HINTS},
    {"type": "resource", "resource": CONTENT},
    {"type": "resource_link", "uri": "a://notes", "name": ODD, "description": ODD},
    {"type": "hologram", ODD: [ODD]},
]
FORM: Json = {"type": "object", "properties": {"a": {"type": "string", "description": ODD}}}
ANSWERS: dict[str, Json] = {
    "initialize": {
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {}, "resources": {}, "prompts": {}, "completions": {}},
        "serverInfo": {"name": "unseen", "version": "0"},
        "instructions": ODD,
    },
    "tools/list": {
        "tools": [
            *({"name": name, **TOOL} for name in NAMES),
            {"name": "plain", "inputSchema": {"type": "object"}},
            {"name": "odd_key", "inputSchema": HIDDEN},
            {"name": "odd_out", "inputSchema": {"type": "object"}, "outputSchema": HIDDEN},
            {"name": "odd\ufe01name", "inputSchema": {"type": "object"}},
        ]
    },
    "resources/list": {"resources": [{"uri": "a://notes", "name": ODD, **LISTED}]},
    "resources/templates/list": {
        "resourceTemplates": [{"uriTemplate": "a://{b}", "name": ODD, **LISTED}]
    },
    "prompts/list": {
        "prompts": [{"name": "write", **LISTED, "arguments": [{"name": "c", "description": ODD}]}]
    },
    "resources/read": {"contents": [CONTENT]},
    "prompts/get": {
        "description": ODD,
        "messages": [{"role": "user", "content": block} for block in BLOCKS[:3]],
    },
    "completion/complete": {"completion": {"values": [ODD]}},
}


def main() -> None:
    waiting: Json = {}
    for line in sys.stdin:
        message = json.loads(line)
        method, request = message.get("method"), message.get("id")
        params = message.get("params") or {}
        answer = ANSWERS.get(method)
        if method is None:
            # The client answered a request of the server.
            request, answer = waiting, {"content": BLOCKS[:1]}
        elif method == "tools/call":
            answer = called(params, request)
            waiting = request
        if request is not None and answer is not None:
            send({"id": request, "error" if "code" in answer else "result": answer})
        elif request is not None and method != "tools/call":
            send({"id": request, "error": {"code": -32601, "message": ODD}})


def called(params: Json, request: object) -> Json | None:
    if params["name"] == "refuse":
        return {"code": -32602, "message": ODD}
    if params["name"] == "ask":
        token = params["_meta"]["progressToken"]
        progress = {"progressToken": token, "progress": 1, "message": ODD}
        send({"method": "notifications/progress", "params": progress})
        form = {"mode": "form", "message": ODD, "requestedSchema": FORM}
        send({"id": f"of {request}", "method": "elicitation/create", "params": form})
        return None
    return {"content": BLOCKS, "structuredContent": {ODD: [ODD, {"a": ODD}]}}


def send(message: Json) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
