"""The real MCP servers of the demo: installed with it by pip, started over stdio."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from gateway.errors import ConfigError
from gateway.mcp.servers import StdioServer

_PROGRAMS: Mapping[str, tuple[str, ...]] = {
    "time": ("mcp-server-time",),
    "excel": ("excel-mcp-server", "stdio"),
    "word": ("word_mcp_server",),
}


def servers(
    folder: Path = Path(sys.executable).parent, *, search_path: str | None = None
) -> Mapping[str, StdioServer]:
    """Find the demo's servers, by name.

    Args:
        folder: Where pip puts programs: looked at first.
        search_path: Where else; None is ``PATH``.

    Raises:
        ConfigError: If one is not installed.
    """
    found: dict[str, StdioServer] = {}
    for name, (program, *args) in _PROGRAMS.items():
        beside = shutil.which(program, path=str(folder))
        command = beside or shutil.which(program, path=search_path)
        if command is None:
            raise ConfigError(
                f'the demo\'s server {program!r} is not installed: python -m pip install ".[demo]"'
            )
        found[name] = StdioServer(command=command, args=tuple(args))
    return found
