"""Blocks of content: which kinds MCP knows, and whether one of them has the form that it asks for.

A kind that we do not know is still the tool's answer, and is kept. One that we know and that is
malformed is no answer: who reads it, or passes it on, would fail at it.
"""

from __future__ import annotations

from mcp import types
from pydantic import TypeAdapter, ValidationError

from gateway.types import JsonObject

_KNOWN = frozenset({"text", "image", "audio", "resource", "resource_link"})
_BLOCK: TypeAdapter[types.ContentBlock] = TypeAdapter(types.ContentBlock)


def well_formed(block: JsonObject) -> bool:
    """Say whether MCP knows the kind of *block* and can read it."""
    kind = block.get("type")
    if not isinstance(kind, str) or kind not in _KNOWN:
        return False
    try:
        _BLOCK.validate_python(block)
    except ValidationError:
        return False
    return True


def malformed(block: JsonObject) -> bool:
    """Say whether *block* has no kind, or one that MCP knows and cannot read so."""
    kind = block.get("type")
    return not isinstance(kind, str) or (kind in _KNOWN and not well_formed(block))
