"""Imports of the package `gateway.testing`."""

from __future__ import annotations

import asyncio
import sys


async def test_importing_the_fakes_imports_no_sdk() -> None:
    code = (
        "import sys, gateway.testing; print(sorted({'openai', 'mcp', 'rdflib'} & {*sys.modules}))"
    )

    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE
    )
    printed, _ = await child.communicate()

    assert b"[]" == printed.strip()
