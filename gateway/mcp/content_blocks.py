"""Blocks of content: whether MCP knows the kind, and whether a block has the form of its kind.

A kind that is not known is still the tool's answer, and is kept. A malformed block of a known kind
is no answer: whatever reads it, or passes it on, would fail at it.
"""

from __future__ import annotations

from mcp import types
from pydantic import TypeAdapter, ValidationError

from gateway.types import JsonObject

_KNOWN = frozenset({"text", "image", "audio", "resource", "resource_link"})
_BLOCK: TypeAdapter[types.ContentBlock] = TypeAdapter(types.ContentBlock)


def is_well_formed(block: JsonObject) -> bool:
    """Whether MCP knows the kind of *block* and can read it."""
    kind = block.get("type")
    if not isinstance(kind, str) or kind not in _KNOWN:
        return False
    try:
        _BLOCK.validate_python(block)
    except ValidationError:
        return False
    return True


def is_malformed(block: JsonObject) -> bool:
    """Whether *block* has no kind, or one that MCP knows and cannot read so."""
    kind = block.get("type")
    return not isinstance(kind, str) or (kind in _KNOWN and not is_well_formed(block))
