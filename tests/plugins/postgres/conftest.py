from tests.core.mcp.conftest import bridge, record

__all__ = ["bridge", "record"]
