"""Lenient validation of answers, because the SDK would reject more of them than necessary.

In the SDK, one bad tool makes all tools fail, and one unknown content block the whole result.
Therefore the SDK gets only the part of a result that it accepts, and `keep_raw` provides the rest.

A malformed answer becomes an error for its request, which the SDK would leave without an answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any

from mcp import ClientSession, types
from mcp.shared.dispatcher import ProgressFnT
from mcp.types import JSONRPCMessage, RequestId, jsonrpc_message_adapter
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from gateway.mcp.definitions import LISTS, SKILLS, TOOLS, find_fault, is_too_deep, repair
from gateway.mcp.error_mapping import MALFORMED
from gateway.runtime.json_schema import as_object, as_text, read_empty_maps
from gateway.runtime.text import visible_json
from gateway.types import JsonObject

_MAX_RESULT_DEPTH = 200
"""Maximum nesting depth of a result. The SDK's parsers fail slightly above this depth."""
_RAW: ContextVar[dict[str, Any] | None] = ContextVar("gateway_upstream_raw", default=None)
_RAW_KEYS: Mapping[str, tuple[str, ...]] = {
    **{method: (each.key,) for method, each in LISTS.items()},
    "tools/call": ("content", "structuredContent"),
    "resources/read": ("contents",),
    "prompts/get": ("messages",),
}
"""Keys of a result that are hidden from the SDK, keyed by MCP method. The first key has a list."""
_UNCLEANED_METHODS = {*LISTS, "resources/read"}
_CONTENT_KINDS = frozenset({"text", "image", "audio", "resource", "resource_link"})
_BLOCK_MAPS = frozenset({"_meta", "annotations"})
_OPENING_METHODS = frozenset({"initialize", "server/discover"})
_BLOCK: TypeAdapter[types.ContentBlock] = TypeAdapter(types.ContentBlock)

ANSWER = re.compile(
    rb"""
    \s*\{\s* (?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?
    (?:"id"\s*:\s*(?P<first>\d{1,18})\s*,\s*)? "(?:result|error)"
    (?:.* ,\s*"id"\s*:\s*(?P<last>\d{1,18})\s* (?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)? \}\s*\Z)?
    """,
    re.VERBOSE | re.DOTALL,
)
"""Pattern of a JSON answer. Its groups match the id before (first) or after the result (last)."""


class _Result(BaseModel):
    """Model of any result, without declared fields, so that every key is accepted."""

    model_config = ConfigDict(extra="allow")


def read_message(text: bytes) -> JSONRPCMessage:
    """Return the message in *text*. A malformed answer is replaced by an error for its request.

    Raises:
        ValueError: If *text* is neither a message nor an answer with a readable request id.
        RecursionError: If *text* is nested too deeply to parse.
    """
    try:
        return jsonrpc_message_adapter.validate_json(text, by_name=False)
    except ValueError:
        # The fast parser fails at about 200 levels, so one deep schema would make all tools fail.
        value = _load_json(text)
    try:
        return jsonrpc_message_adapter.validate_python(value, by_name=False)
    except ValidationError:
        if (error := _to_error_answer(value)) is None:
            raise
        return error


def repair_message(text: bytes, request_id: RequestId | None = None) -> bytes:
    """Return the message in *text*, the answer to *request_id* if given, in a form for the SDK.

    Raises:
        ValueError, RecursionError: If the SDK cannot read *text* in any form.
    """
    with suppress(ValueError):
        message = jsonrpc_message_adapter.validate_json(text, by_name=False)
        is_own = (
            isinstance(message, types.JSONRPCResponse | types.JSONRPCError)
            and message.id == request_id
        )
        if request_id is None or is_own:
            return text
    message = read_message(text)
    if request_id is not None:
        is_answer = isinstance(message, types.JSONRPCResponse | types.JSONRPCError)
        message = message if is_answer else malformed_answer(request_id)
        message = message.model_copy(update={"id": request_id})
    repaired = json.dumps(message.model_dump(by_alias=True, exclude_unset=True)).encode()
    jsonrpc_message_adapter.validate_json(repaired, by_name=False)
    return repaired


def malformed_answer(request_id: RequestId) -> types.JSONRPCError:
    """Return the error for a request whose answer is malformed."""
    error = types.ErrorData(code=MALFORMED, message="the answer is malformed")
    return types.JSONRPCError(jsonrpc="2.0", id=request_id, error=error)


def _load_json(text: bytes) -> object:
    try:
        # Python refuses to parse integers with more than 4300 digits.
        return json.loads(
            text, parse_int=lambda digits: float(digits) if digits[4300:] else int(digits)
        )
    except ValueError:
        answer = ANSWER.match(text)
        request = answer and (answer["first"] or answer["last"])
        if not request:
            raise
        return {"id": int(request), "result": None}


def _to_error_answer(value: object) -> types.JSONRPCError | None:
    """Return the error answer for the malformed answer *value*; None if it has no id."""
    fields = as_object(value)
    request = fields.get("id")
    if isinstance(request, float) and request.is_integer():
        request = int(request)
    is_answer = "method" not in fields and fields.keys() & {"jsonrpc", "result", "error"}
    if not is_answer or isinstance(request, bool) or not isinstance(request, int | str):
        return None
    answer, error = malformed_answer(request), fields.get("error")
    if error is not None:
        code = as_object(error).get("code")
        answer.error.code = code if isinstance(code, int) else types.INTERNAL_ERROR
        answer.error.message = as_text(as_object(error).get("message")) or as_text(error)
    return answer


@contextmanager
def keep_raw() -> Iterator[dict[str, Any]]:
    """Yield a dictionary that receives the parts of results that `hide_raw` hides from the SDK."""
    raw: dict[str, Any] = {}
    token = _RAW.set(raw)
    try:
        yield raw
    finally:
        _RAW.reset(token)


async def send_request(
    session: ClientSession, method: str, params: JsonObject, on_progress: ProgressFnT | None = None
) -> dict[str, Any]:
    """Send a request and return its result as sent. Raises the errors of the SDK."""
    request: types.ClientRequest | types.Request[Any, Any]
    if method == SKILLS.method:
        # The SDK does not support requests of MCP extensions.
        request = types.Request[dict[str, Any], str](method=method, params=dict(params))
    else:
        whole = {"method": method, "params": params}
        request = types.client_request_adapter.validate_python(whole)
    with keep_raw() as raw:
        result = await session.send_request(request, _Result, progress_callback=on_progress)
    return {**(result.model_extra or {}), **raw}


def hide_raw(method: str, result: dict[str, Any]) -> dict[str, Any]:
    """Return the part of *result* that the SDK accepts. `keep_raw` receives the rest."""
    # Definitions are checked as sent, files have digests, and request states are sent back.
    is_cleaned = method not in _UNCLEANED_METHODS and result.get("resultType") != "input_required"
    if is_cleaned and not is_too_deep(result, _MAX_RESULT_DEPTH):
        result = visible_json(result)
        if method in _OPENING_METHODS:
            result["capabilities"] = read_empty_maps(result.get("capabilities"), None)
    if not isinstance(result.get("_meta", {}), dict):
        result = {key: value for key, value in result.items() if key != "_meta"}
    keys, raw = _RAW_KEYS.get(method, ("",)), _RAW.get()
    items = result.get(keys[0])
    if raw is None or not isinstance(items, list):
        return result
    if method == "tools/call":
        items = read_empty_maps(items, _BLOCK_MAPS)
    raw.update({**{key: result[key] for key in keys if key in result}, keys[0]: items})
    visible: list[object] | None = []
    if method == TOOLS.method:
        # The SDK reads only the x-mcp-header marks of tools.
        visible = [
            {"name": tool["name"], "inputSchema": tool["inputSchema"]}
            for tool in (repair(item, TOOLS) for item in items)
            if isinstance(tool, dict) and not find_fault(tool, TOOLS)
        ]
    elif (method not in LISTS and is_too_deep(raw, _MAX_RESULT_DEPTH)) or (
        method == "tools/call" and any(map(is_malformed, items))
    ):
        visible = None
    return {**{key: value for key, value in result.items() if key not in raw}, keys[0]: visible}


def is_well_formed(block: object) -> bool:
    """Return whether *block* is a valid content block of a kind that MCP defines."""
    try:
        _BLOCK.validate_python(block)
    except ValidationError:
        return False
    return _kind_of(block) in _CONTENT_KINDS


def is_malformed(block: object) -> bool:
    """Return whether *block* has no kind, or is an invalid block of a kind that MCP defines."""
    kind = _kind_of(block)
    return not kind or (kind in _CONTENT_KINDS and not is_well_formed(block))


def _kind_of(block: object) -> str:
    kind = block.get("type") if isinstance(block, dict) else None
    return kind if isinstance(kind, str) else ""
