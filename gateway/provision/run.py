"""Runs one command of an install: no shell, few variables, no input, a time limit, one group.

What the user set for pip, uv and npm holds: mirrors, proxies, certificates, caches. Nothing else
of the environment is handed on, so an installer cannot leak what it never had.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryFile
from typing import TextIO

from gateway.errors import UpstreamError, UpstreamTimeoutError
from gateway.mcp.servers import StdioServer
from gateway.options.environment import variables
from gateway.runtime.text import clean

_PIP = (
    "CACHE_DIR", "CERT", "CONFIG_FILE", "DEFAULT_TIMEOUT", "EXTRA_INDEX_URL", "FIND_LINKS",
    "INDEX_URL", "NO_INDEX", "PROXY", "TRUSTED_HOST",
)  # fmt: skip
_UV = ("CACHE_DIR", "DEFAULT_INDEX", "FIND_LINKS", "INDEX", "INDEX_URL")
_NPM = ("cache", "cafile", "registry", "userconfig")
_PROXIES = ("all_proxy", "http_proxy", "https_proxy", "no_proxy")
_CERTIFICATES = ("NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "SSL_CERT_DIR", "SSL_CERT_FILE")
HANDED_ON = frozenset(
    {
        *(f"PIP_{name}" for name in _PIP),
        *(f"UV_{name}" for name in _UV),
        *(
            written
            for name in _NPM
            for written in (f"npm_config_{name}", f"NPM_CONFIG_{name.upper()}")
        ),
        *(written for name in _PROXIES for written in (name, name.upper())),
        *_CERTIFICATES,
        "SYSTEMROOT",
    }
)
"""The variables that an installer inherits, beside PATH, HOME and their like."""

_TOLD_CHARS = 600
_TAIL_BYTES = 16_000
_CHUNK = 1 << 16
_USERINFO = re.compile(r"://[^/\s@]+@")


async def run(
    server: str, command: Sequence[str], *, folder: Path, path: str, limit_s: float
) -> None:
    """Run *command* to its end.

    Args:
        server: For messages.
        command: Program and arguments.
        folder: Where it runs: what lies in the folder at hand is none of its business.
        path: Put before the search path that it inherits.
        limit_s: How long it may take; then its whole process group is ended.

    Raises:
        UpstreamError: It cannot be started, or failed; the end of what it said is told.
        UpstreamTimeoutError: It took too long.
    """
    from gateway.mcp.stdio import end, spawn  # noqa: PLC0415  (mcp is heavy: looking at what there is must not pay for it)

    program, *args = command
    called = Path(program).name
    target = StdioServer(program, tuple(args), env=_environment(path), cwd=folder)
    with TemporaryFile("w+", encoding="utf-8", errors="replace") as errors:
        try:
            process = await spawn(target, errors)
        except (OSError, ValueError) as error:
            told = f"{called} cannot be started: {type(error).__name__}"
            raise UpstreamError(server, told, kind="config", sent=False) from error
        try:
            async with asyncio.timeout(limit_s):
                code = await _drained(process)
        except TimeoutError as error:
            told = f"{called} did not end within {limit_s} s"
            raise UpstreamTimeoutError(server, told) from error
        finally:
            await end(process, grace_s=0.2)
        if code != 0:
            raise UpstreamError(server, f"{called} failed ({code}): {_tail(errors)}")


async def _drained(process: asyncio.subprocess.Process) -> int:
    # What is not read would fill the pipe and stop the installer.
    assert process.stdin is not None  # noqa: S101  (both are pipes: for the type checker)
    assert process.stdout is not None  # noqa: S101
    process.stdin.close()
    while await process.stdout.read(_CHUNK):
        pass
    return await process.wait()


def _environment(path: str) -> dict[str, str]:
    inherited = variables(HANDED_ON | {"PATH"})
    parts = (path, inherited.pop("PATH", os.defpath))
    return {**inherited, "PATH": os.pathsep.join(part for part in parts if part)}


def _tail(errors: TextIO) -> str:
    errors.seek(0, os.SEEK_END)
    errors.seek(max(errors.tell() - _TAIL_BYTES, 0))
    said = _USERINFO.sub("://***@", errors.read())
    return (
        clean(said[-2 * _TOLD_CHARS :], limit=2 * _TOLD_CHARS)[-_TOLD_CHARS:] or "it said nothing"
    )
