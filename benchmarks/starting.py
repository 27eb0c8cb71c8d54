"""What a start costs that finds its index saved: from nothing to the first result.

* Medians of the process CPU of fresh processes, held against one that does ``import numpy``. What
  a file costs to read for the first time after the machine has started is not counted.
* The tools are those of servers whose lists were read once, as an ``mcp.json`` would name them; no
  server is there to answer.
* Vectors are drawn by chance, so that no model has to load.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Annotated

import typer

from benchmarks.lifelike import servers
from benchmarks.started import address
from benchmarks.tables import print_figures
from gateway.catalog.identity import definition_digest
from gateway.mcp.servers import HttpServer
from gateway.storage.catalog import SqlCatalog
from gateway.types import Strategy

_TOLD = "; print(time.process_time())"

app = typer.Typer(add_completion=False)


@app.command()
def main(
    *,
    tools: Annotated[int, typer.Option(help="Twenty a server.")] = 10_000,
    strategy: Annotated[Strategy, typer.Option(help="What ranks.")] = "auto",
    runs: Annotated[int, typer.Option(help="Processes of each kind, by turns.")] = 7,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Measure, and print the figures."""
    print_figures(measure(tools, strategy, runs), as_json=as_json)


def measure(tools: int, strategy: Strategy, runs: int) -> Mapping[str, float]:
    """Return every figure by name.

    Args:
        tools: How many there are, twenty a server.
        strategy: What ranks.
        runs: How many processes of each kind are measured, by turns.
    """
    with tempfile.TemporaryDirectory() as folder:
        listed = asyncio.run(_list(tools, Path(folder)))
        cold = _start(listed, strategy, folder)
        numpy_s, found = [], []
        for _ in range(runs):
            numpy_s.append(float(_ran(folder, "-c", f"import numpy, time{_TOLD}")))
            found.append(_start(listed, strategy, folder))
    if not all(each["saved"] for each in found):
        raise AssertionError("an index was made that should have been read")
    parts = {name: median(each[name] for each in found) for name in found[0]}
    return {
        "numpy_s": median(numpy_s),
        **{name: parts[name] for name in parts if name != "saved"},
        "cold_s": cold["total_s"],
        "ratio": median(each["total_s"] for each in found) / median(numpy_s),
    }


async def _list(tools: int, folder: Path) -> int:
    """Note the lists of servers as if they had been read, and say how many servers there are."""
    records = SqlCatalog.in_files(folder / "catalog.sqlite3")
    number = 0
    for number, source in enumerate(servers(tools), start=1):
        server = HttpServer(url=address(number - 1))
        listing = await source.list_tools()
        digests = {tool.name: definition_digest(source.server, tool) for tool in listing.tools}
        records.keep(server.fingerprint, source.server, replace(listing, digests=digests))
    records.close()
    return number


def _start(listed: int, strategy: Strategy, folder: str) -> dict[str, float]:
    found: dict[str, float] = json.loads(
        _ran(folder, "-m", "benchmarks.started", str(listed), strategy)
    )
    return found


def _ran(folder: str, *arguments: str) -> str:
    variables = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    # Modules are compiled once, as an installation does it.
    variables.pop("PYTHONDONTWRITEBYTECODE", None)
    variables |= {"GATEWAY_CACHE_DIR": folder, "PYTHONPYCACHEPREFIX": f"{folder}/compiled"}
    done = subprocess.run(
        [sys.executable, *arguments], check=True, capture_output=True, text=True, env=variables
    )
    return done.stdout


if __name__ == "__main__":
    app()
