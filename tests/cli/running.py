"""The command line as a user runs it: in this process, or as a child."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from gateway.cli.app import app

BIN = Path(sys.executable).parent
TIME: dict[str, object] = {"command": str(BIN / "mcp-server-time")}
EXCEL: dict[str, object] = {"command": str(BIN / "excel-mcp-server"), "args": ["stdio"]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output as the one JSON document that it is."""
        return json.loads(self.out)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A folder with a cache of its own, where commands run."""

    folder: Path

    def config(self, servers: Mapping[str, object] | None = None, **more: object) -> str:
        """Write a configuration (by default of the time server) and give its path."""
        path = self.folder / "servers.json"
        table = {"time": TIME} if servers is None else servers
        path.write_text(json.dumps({"mcpServers": table, **more}), encoding="utf-8")
        return str(path)

    @property
    def cache(self) -> Path:
        """Where vectors are kept."""
        return self.folder / "cache"

    def run(self, *arguments: str, stdin: str = "", env: Mapping[str, str] | None = None) -> Ran:
        """Run a command in this process."""
        told = {"GATEWAY_CACHE_DIR": str(self.cache), "COLUMNS": "200", **(env or {})}
        ended = CliRunner().invoke(app, list(arguments), input=stdin, env=told)
        if ended.exception is not None and not isinstance(ended.exception, SystemExit):
            raise ended.exception
        return Ran(code=ended.exit_code, out=ended.stdout, err=ended.stderr)


def child(*command: str, cwd: Path, env: Mapping[str, str]) -> Ran:
    """Run Python with *command* in a process of its own, with no variables but *env*.

    The encoder as its engine reads it is made once for all tests.
    """
    encoders = {"GATEWAY_ENCODER_DIR": os.environ["GATEWAY_ENCODER_DIR"]}
    ended = subprocess.run(
        [sys.executable, *command],
        cwd=cwd,
        env={"PATH": str(BIN), "HOME": str(cwd), **encoders, **env},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    return Ran(code=ended.returncode, out=ended.stdout, err=ended.stderr)
