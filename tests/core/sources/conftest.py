"""The fixtures of the MCP tests that sources need too."""

from tests.core.mcp.conftest import bridge, record

__all__ = ["bridge", "record"]
