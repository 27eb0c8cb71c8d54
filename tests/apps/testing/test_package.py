"""Imports of the package `gateway.testing`."""

from __future__ import annotations

import asyncio
import sys


async def test_importing_gateway_testing_does_not_import_the_openai_sdk() -> None:
    code = (
        "import sys, gateway.testing; print(sorted({'openai', 'mcp', 'rdflib'} & {*sys.modules}))"
    )

    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE
    )
    printed, _ = await child.communicate()

    assert b"[]" == printed.strip()
