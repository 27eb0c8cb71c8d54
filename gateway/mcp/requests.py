"""Requests that change nothing, and their answers as JSON: reading, prompts, completions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TypeAlias

from mcp import Client, types
from pydantic import TypeAdapter

from gateway.errors import UpstreamError
from gateway.mcp.lenient_transport import RAW
from gateway.mcp.server_requests import Backchannel, Call
from gateway.options import UpstreamOptions
from gateway.types import JsonObject

_Answer: TypeAlias = (
    types.ReadResourceResult
    | types.GetPromptResult
    | types.CompleteResult
    | types.InputRequiredResult
)
_Request: TypeAlias = types.ReadResourceRequest | types.GetPromptRequest | types.CompleteRequest
_RESERVED = "io.modelcontextprotocol/"
"""What a server says of itself there is not what we would say."""
_RESOURCE_NOT_FOUND = -32002
NOT_FOUND = frozenset({types.INVALID_PARAMS, _RESOURCE_NOT_FOUND})
"""Codes by which a server says that it has no such thing; the second before 2026-07-28."""

_KINDS: Mapping[str, tuple[TypeAdapter[_Request], TypeAdapter[_Answer]]] = {
    "resources/read": (
        TypeAdapter(types.ReadResourceRequest),
        TypeAdapter(types.ReadResourceResult | types.InputRequiredResult),
    ),
    "prompts/get": (
        TypeAdapter(types.GetPromptRequest),
        TypeAdapter(types.GetPromptResult | types.InputRequiredResult),
    ),
    "completion/complete": (TypeAdapter(types.CompleteRequest), TypeAdapter(types.CompleteResult)),
}


async def asked(
    client: Client,
    back: Backchannel,
    call: Call,
    method: str,
    params: JsonObject,
    options: UpstreamOptions,
) -> JsonObject:
    """Send *method* on *client*'s connection, round by round, and give the result as JSON.

    Raises:
        UpstreamError: The answer is larger than the options allow.
    """
    request_of, result_of = _KINDS[method]
    listener = back.listener(call)

    async def send(said: types.InputResponses | None, state: str | None) -> _Answer:
        given = {**params, **({"requestState": state} if state is not None else {})}
        request = request_of.validate_python({"method": method, "params": given})
        if said is not None and not isinstance(request, types.CompleteRequest):
            request.params.input_responses = said
        return await client.session.send_request(request, result_of, progress_callback=listener)

    done = await back.rounds(call, send)
    result = _json(done)
    size = len(json.dumps(result, ensure_ascii=False))
    if size > options.max_result_bytes:
        told = f"its answer to {method} is longer than UpstreamOptions.max_result_bytes"
        raise UpstreamError(back.server, told)
    return result


def _json(done: types.Result) -> JsonObject:
    result = done.model_dump(by_alias=True, mode="json", exclude_none=True)
    meta = result.pop("_meta", {})
    raw = meta.pop(RAW, {})
    meta = {key: value for key, value in meta.items() if not key.startswith(_RESERVED)}
    return {**result, **raw, **({"_meta": meta} if meta else {})}
