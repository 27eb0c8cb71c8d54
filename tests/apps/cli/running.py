"""Runs of the command line, in this process or a child process."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from typer.testing import CliRunner

from gateway.cli.app import app

BIN = Path(sys.executable).parent
_SERVERS = Path(__file__).parents[2] / "core" / "mcp" / "servers"
CLOCK = (sys.executable, str(_SERVERS / "quick.py"), "clock")
TIME: dict[str, object] = {"command": CLOCK[0], "args": [*CLOCK[1:]]}
"""Command of a small program that replaces the real time server and offers the same tools."""
PLAIN: dict[str, object] = {"command": sys.executable, "args": [CLOCK[1], "plain", os.devnull]}
"""Command of a small program that no bundled document is about."""
REAL_TIME: dict[str, object] = {"command": str(BIN / "mcp-server-time")}
EXCEL: dict[str, object] = {"command": str(BIN / "excel-mcp-server"), "args": ["stdio"]}
WORD: dict[str, object] = {"command": str(BIN / "word_mcp_server")}
WITHOUT_PACKAGE = """
import sys
sys.modules[{!r}] = None  # Python's own way to say that a package cannot be imported
from gateway.cli import main
main()
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A folder in which commands run, with its own cache. It may be a home folder."""

    folder: Path

    def config(self, servers: Mapping[str, object] | None = None, **more: object) -> str:
        """Write a configuration of *servers* (default: the time server); return its path."""
        table = {"time": TIME} if servers is None else servers
        return str(self.put("servers.json", {"mcpServers": table, **more}))

    def put(self, path: str, content: object) -> Path:
        """Write *content* (a text, or JSON) to a file in the folder."""
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")
        return file

    def hostile(self, mode: str = "plain", **more: object) -> dict[str, object]:
        """Return a server that records its starts and misbehaves as *mode* says."""
        args = [str(_SERVERS / "hostile.py"), mode, str(self.folder / "record")]
        return {"command": sys.executable, "args": args, **more}

    @property
    def cache(self) -> Path:
        return self.folder / "cache"

    @property
    def own_config(self) -> Any:
        return json.loads((self.folder / "mcp.json").read_text("utf-8"))

    def run(self, *arguments: str, stdin: str = "", env: Mapping[str, str] | None = None) -> Ran:
        """Run a gateway command in this process."""
        variables = {"GATEWAY_CACHE_DIR": str(self.cache), "COLUMNS": "200", **(env or {})}
        ended = CliRunner().invoke(app, list(arguments), input=stdin, env=variables)
        if ended.exception is not None and not isinstance(ended.exception, SystemExit):
            raise ended.exception
        return Ran(code=ended.exit_code, out=ended.stdout, err=ended.stderr)

    def at_home(self, *arguments: str) -> Ran:
        """Run a gateway command with this folder as the home folder too."""
        home = str(self.folder)
        env = {"HOME": home, "XDG_CONFIG_HOME": f"{home}/.config"}
        with contextlib.chdir(self.folder):
            return self.run(*arguments, env=env)

    @contextmanager
    def serve(
        self, *arguments: str, **env: str
    ) -> Iterator[tuple[subprocess.Popen[str], Iterator[str], str]]:
        """Run ``gateway serve --http``; yield the process, its messages and its address."""
        command = [sys.executable, "-m", "gateway", "serve", "--http", "--port", "0"]
        cache = {"GATEWAY_CACHE_DIR": str(self.cache), "COLUMNS": "200"}
        with subprocess.Popen(
            [*command, "--strategy", "graph", *arguments],
            stderr=subprocess.PIPE,
            text=True,
            env={"PATH": str(BIN), **cache, **env},
        ) as process:
            assert process.stderr is not None
            messages: IO[str] = process.stderr
            line = next(item for item in messages if "serving" in item)
            yield process, messages, line.split("serving ")[1].strip()
            process.terminate()
            process.wait(timeout=30)


@contextmanager
def start_python(
    *command: str, cwd: Path, env: Mapping[str, str], output: Path
) -> Iterator[tuple[subprocess.Popen[str], Iterator[str]]]:
    """Start Python like `child`; yield the process and the lines of its standard error.

    Standard output goes to the file *output*. A full pipe would block the process.
    """
    with (
        output.open("w", encoding="utf-8") as file,
        subprocess.Popen(
            [sys.executable, *command],
            cwd=cwd,
            env=_child_env(cwd, env),
            stdout=file,
            stderr=subprocess.PIPE,
            text=True,
        ) as process,
    ):
        assert process.stderr is not None
        yield process, process.stderr


def child(*command: str, cwd: Path, env: Mapping[str, str]) -> Ran:
    """Run Python in a child process that has only the variables of *env*.

    The prepared encoder is built once for all tests.
    """
    ended = subprocess.run(
        [sys.executable, *command],
        cwd=cwd,
        env=_child_env(cwd, env),
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    return Ran(code=ended.returncode, out=ended.stdout, err=ended.stderr)


def _child_env(cwd: Path, env: Mapping[str, str]) -> dict[str, str]:
    encoders = {"GATEWAY_ENCODER_DIR": os.environ["GATEWAY_ENCODER_DIR"]}
    return {"PATH": str(BIN), "HOME": str(cwd), "COLUMNS": "200", **encoders, **env}
