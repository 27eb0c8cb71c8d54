"""A stub chat service in a process of its own, with constant answers at next to no cost.

    python -m benchmarks.stub_service

It prints its port and serves until its standard input is closed. A request that mentions a
search and holds no tool message yet is answered with a call of `search_tools`, every other one with
a text. In a process of its own, so that the CPU of the measured process is the client's alone.
"""

from __future__ import annotations

import asyncio
import json
import sys

_HEAD = {"id": "chatcmpl-1", "created": 1, "model": "canned"}
_USAGE = {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}


def _whole(message: dict[str, object], reason: str) -> bytes:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": reason}
    body = {**_HEAD, "object": "chat.completion", "choices": [choice], "usage": _USAGE}
    return _response("application/json", json.dumps(body).encode())


def _response(kind: str, body: bytes) -> bytes:
    head = f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n\r\n"
    return head.encode() + body


def _stream() -> bytes:
    words: list[dict[str, object]] = [{"content": f"word {number} "} for number in range(20)]
    deltas: list[dict[str, object]] = [{"role": "assistant", "content": ""}, *words]
    ends: list[str | None] = [*([None] * len(deltas)), "stop"]
    chunks = [
        {"index": 0, "delta": delta, "finish_reason": end}
        for delta, end in zip([*deltas, {}], ends, strict=True)
    ]
    events = [
        json.dumps({**_HEAD, "object": "chat.completion.chunk", "choices": [chunk]})
        for chunk in chunks
    ]
    return _response(
        "text/event-stream", "".join(f"data: {event}\n\n" for event in events).encode()
    )


_CALL = {
    "id": "call_1",
    "type": "function",
    "function": {"name": "search_tools", "arguments": '{"query": "send a message"}'},
}
_TEXT = _whole({"content": "Hello."}, "stop")
_SEARCH = _whole({"content": None, "tool_calls": [_CALL]}, "tool_calls")
_STREAM = _stream()


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while head := await _head(reader):
        length = next(line for line in head.lower().split(b"\r\n") if b"content-length" in line)
        body = await reader.readexactly(int(length.split(b":")[1]))
        if b'"stream":true' in body:
            writer.write(_STREAM)
        elif b"please search" in body and b'"role":"tool"' not in body:
            writer.write(_SEARCH)
        else:
            writer.write(_TEXT)
        await writer.drain()
    writer.close()


async def _head(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return b""


async def main() -> None:
    """Serve until standard input is closed."""
    server = await asyncio.start_server(_serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.read)
    server.close()


if __name__ == "__main__":
    asyncio.run(main())
