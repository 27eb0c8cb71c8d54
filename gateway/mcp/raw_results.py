"""Results as servers send them, past an SDK that validates a whole result or loses it.

To it, one bad tool would cost all tools, and one unknown content block the whole result. So it is
given the part of a result that it surely accepts, and the rest goes with that under `RAW` in the
``_meta``. A content block of a kind that MCP does not know is still the tool's answer. A malformed
block of a known kind is no answer: the SDK is given a result that it refuses.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

from mcp import ClientSession, types
from mcp.shared.dispatcher import ProgressFnT
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from gateway.mcp.listing_validation import LISTS, TOOLS, drop_deep_nesting, find_fault
from gateway.types import JsonObject

RAW = f"tool-gateway/raw-{secrets.token_hex(8)}"
"""The key in ``_meta``, which no server can guess."""
_RAW_KEYS: Mapping[str, tuple[str, ...]] = {
    **{method: (each.key,) for method, each in LISTS.items()},
    "tools/call": ("content", "structuredContent"),
    "resources/read": ("contents",),
    "prompts/get": ("messages",),
}
"""By method, what the SDK need not see of a result; the first is a list."""
_CONTENT_KINDS = frozenset({"text", "image", "audio", "resource", "resource_link"})
_BLOCK: TypeAdapter[types.ContentBlock] = TypeAdapter(types.ContentBlock)


class _Result(BaseModel):
    """Any result; its fields are extra ones."""

    model_config = ConfigDict(extra="allow")


async def send_request(
    session: ClientSession, method: str, params: JsonObject, on_progress: ProgressFnT | None = None
) -> dict[str, Any]:
    """Send a request and return its result as the server sent it. Raises what the SDK raises."""
    request = types.client_request_adapter.validate_python({"method": method, "params": params})
    result = await session.send_request(request, _Result, progress_callback=on_progress)
    fields = result.model_extra or {}
    meta = dict(fields.pop("_meta", None) or {})
    return {**fields, **meta.pop(RAW, {}), "_meta": meta}


def hide_raw(method: str, result: dict[str, Any]) -> dict[str, Any]:
    """Return *result* of *method* as the SDK accepts it, with the rest under `RAW`."""
    keys = _RAW_KEYS.get(method, ("",))
    items = result.get(keys[0])
    if not isinstance(items, list):
        return result
    raw: dict[str, Any] = {key: result[key] for key in keys if key in result}
    visible: list[object] | None = []
    if method in LISTS:
        raw[keys[0]] = items = [drop_deep_nesting(item, LISTS[method]) for item in items]
    if method == TOOLS.method:
        # Name and schema are enough for the SDK: it reads the x-mcp-header marks from them.
        visible = [
            {"name": tool["name"], "inputSchema": tool["inputSchema"]}
            for tool in items
            if not find_fault(tool, TOOLS)
        ]
    elif method == "tools/call" and any(map(is_malformed, items)):
        visible = None
    meta = result.get("_meta")
    rest = {key: value for key, value in result.items() if key not in raw}
    return {
        **rest,
        keys[0]: visible,
        "_meta": {**(meta if isinstance(meta, dict) else {}), RAW: raw},
    }


def is_well_formed(block: object) -> bool:
    """Whether MCP knows the kind of the content *block* and can read it."""
    try:
        _BLOCK.validate_python(block)
    except ValidationError:
        return False
    return _kind(block) in _CONTENT_KINDS


def is_malformed(block: object) -> bool:
    """Whether *block* has no kind, or one that MCP knows and cannot read so."""
    kind = _kind(block)
    return not kind or (kind in _CONTENT_KINDS and not is_well_formed(block))


def _kind(block: object) -> str:
    kind = block.get("type") if isinstance(block, dict) else None
    return kind if isinstance(kind, str) else ""
