"""Servers and sign-ins, whose tokens the tests keep in PostgreSQL."""

from tests.core.mcp.conftest import bridge, record

__all__ = ["bridge", "record"]
