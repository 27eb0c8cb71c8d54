"""A listing in which every stored field has a value."""

from __future__ import annotations

from gateway.types import Diagnostic, Hints, Listing, ToolDefinition
from tests.fakes import tool

LISTING = Listing(
    definitions=(
        ToolDefinition(
            name="pay",
            title="Pay",
            description="Pay é.",
            input_schema={"type": "object", "properties": {"to": {"type": "string"}}},
            output_schema={"type": "object"},
            hints=Hints(read_only=False, destructive=True),
        ),
        tool("look"),
        ToolDefinition(
            kind="resource", name="a://b", title="B", details={"mimeType": "text/plain"}
        ),
        ToolDefinition(kind="prompt", name="pay", input_schema={"type": "object"}),
    ),
    diagnostics=(Diagnostic(stage="catalog", code="tool_quarantined", detail="'x': no"),),
    digests={"pay": "d1", "look": "d2"},
    suspicions={"pay": ("hidden text",)},
)
