"""Real MCP servers for measuring: installed into a folder of their own, never into ours.

* Versions are fixed: a figure can be measured again.
* Each Python package has an environment of its own, as their needs exclude each other; the npm
  packages share one ``node_modules``.
* None needs a key, and none reaches the network to list its tools.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from gateway.mcp.servers import StdioServer

_DATA = "{data}"
"""Stands for a folder of the server's own."""


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """A server: what to install, and how to start it."""

    packages: tuple[str, ...]
    program: str
    """For Python a name in the environment's ``bin``; for npm in ``node_modules/.bin``."""
    args: tuple[str, ...] = ()


def _wanted(package: str, *args: str, program: str = "", needs: str = "") -> Wanted:
    """Return a server whose program has the name of its package, if no other is named."""
    name = package.rpartition("==")[0] or package.rpartition("@")[0]
    packages = (package, needs) if needs else (package,)
    return Wanted(packages=packages, program=program or name, args=args)


_OFFICIAL = "@modelcontextprotocol/server-{}@2026.8.31"
PYPI: Mapping[str, Wanted] = {
    "time": _wanted("mcp-server-time==2026.10.19"),
    "git": _wanted("mcp-server-git==2026.10.19"),
    "fetch": _wanted("mcp-server-fetch==2026.10.24"),
    "excel": _wanted("excel-mcp-server==2.2.2", "stdio"),
    "word": _wanted("office-word-mcp-server==1.1.11", program="word_mcp_server"),
    "sqlite": _wanted(
        "mcp-server-sqlite==2025.4.25", "--db-path", f"{_DATA}/notes.db", needs="mcp<2"
    ),
    "duckdb": _wanted(
        "mcp-server-duckdb==1.1.0", "--db-path", f"{_DATA}/numbers.duckdb", needs="mcp<2"
    ),
    "arxiv": _wanted("arxiv-mcp-server==0.8.2", "--storage-path", _DATA),
}
NPM: Mapping[str, Wanted] = {
    "everything": _wanted(_OFFICIAL.format("everything"), program="mcp-server-everything"),
    "filesystem": _wanted(_OFFICIAL.format("filesystem"), _DATA, program="mcp-server-filesystem"),
    "memory": _wanted(_OFFICIAL.format("memory"), program="mcp-server-memory"),
    "thinking": _wanted(
        _OFFICIAL.format("sequential-thinking"), program="mcp-server-sequential-thinking"
    ),
    "sqlite-js": _wanted("mcp-server-sqlite-npx@0.8.0", f"{_DATA}/notes.db"),
    "kubernetes": _wanted("mcp-server-kubernetes@4.1.7"),
    "context7": _wanted("@upstash/context7-mcp@4.1.1", program="context7-mcp"),
}


def installed(folder: Path, *, jobs: int = 2) -> dict[str, StdioServer]:
    """Install what is missing below *folder*, and give the servers by name.

    Args:
        folder: Made if it is not there; a second time nothing is fetched.
        jobs: Environments that are made at the same time.

    Raises:
        RuntimeError: A package could not be installed; the message ends with what was said.
    """
    home = folder.resolve()
    home.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(jobs) as pool:
        node = pool.submit(_npm, home / "npm")
        list(pool.map(lambda name: _pypi(home / "pypi" / name, PYPI[name]), PYPI))
        node.result()
    python = {name: _server(home, name, home / "pypi" / name / "bin", PYPI[name]) for name in PYPI}
    binaries = home / "npm" / "node_modules" / ".bin"
    return {**python, **{name: _server(home, name, binaries, NPM[name]) for name in NPM}}


def _pypi(environment: Path, wanted: Wanted) -> None:
    if (environment / "bin" / wanted.program).exists():
        return
    _run(sys.executable, "-m", "venv", str(environment))
    _run(str(environment / "bin" / "pip"), "install", "--quiet", *wanted.packages)


def _npm(prefix: Path) -> None:
    binaries = prefix / "node_modules" / ".bin"
    if all((binaries / wanted.program).exists() for wanted in NPM.values()):
        return
    program = shutil.which("npm")
    if program is None:
        raise RuntimeError("npm was not found: install Node.js 20 or later")
    prefix.mkdir(parents=True, exist_ok=True)
    packages = [package for wanted in NPM.values() for package in wanted.packages]
    _run(program, "install", "--prefix", str(prefix), "--no-audit", "--no-fund", *packages)


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{(done.stdout + done.stderr)[-2000:]}")


def _server(home: Path, name: str, binaries: Path, wanted: Wanted) -> StdioServer:
    data = home / "data" / name
    data.mkdir(parents=True, exist_ok=True)
    args = tuple(each.replace(_DATA, str(data)) for each in wanted.args)
    return StdioServer(str(binaries / wanted.program), args, cwd=data)
