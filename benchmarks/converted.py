"""Public function-calling sets, made into folders of the common format.

    python -m benchmarks.converted bfcl PACKAGE/data --out DIR
    python -m benchmarks.converted agentdojo --out DIR
    python -m benchmarks.converted tooltalk PACKAGE/tooltalk --out DIR

* They come out of packages, none of which is a dependency: bfcl-eval and nvidia-tooltalk are read
  from their unpacked folders, agentdojo must be installed.
* `benchmarks.sources` has a module a package, which says what its tools and requests are.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from benchmarks.sources.agentdojo import SUITES, tasks
from benchmarks.sources.bfcl import FUNCTIONS, TURNS, functions, turns
from benchmarks.sources.rows import Row
from benchmarks.sources.tooltalk import utterances

_Out = Annotated[Path, typer.Option(help="Where a folder a set goes.")]

app = typer.Typer(add_completion=False, help=__doc__)


@app.command()
def bfcl(
    data: Annotated[Path, typer.Argument(help="The data folder of bfcl-eval.")], out: _Out
) -> None:
    """Write the Berkeley Function Calling Leaderboard's sets."""
    for name, categories in FUNCTIONS.items():
        _write(out / name, *functions(data, categories))
    _write(out / TURNS, *turns(data))


@app.command()
def agentdojo(out: _Out) -> None:
    """Write the tasks of AgentDojo, which must be installed."""
    suites = installed("agentdojo.task_suite.load_suites").get_suites(SUITES)
    _write(out / "agentdojo", *tasks(suites))


@app.command()
def tooltalk(
    package: Annotated[Path, typer.Argument(help="The tooltalk folder of nvidia-tooltalk.")],
    out: _Out,
) -> None:
    """Write the requests of ToolTalk's conversations."""
    _write(out / "tooltalk", *utterances(package))


def installed(module: str) -> Any:
    """Import a module of a package that stands beside the project.

    Raises:
        typer.BadParameter: If it is not installed.
    """
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise typer.BadParameter(f"{package} is not installed in this environment") from error


def _write(folder: Path, tools: Sequence[Row], queries: Sequence[Row]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    _lines(folder / "catalog.jsonl", tools)
    _lines(folder / "queries.jsonl", queries)
    Console().print(f"{folder.name}: {len(tools)} tools, {len(queries)} queries")


def _lines(path: Path, rows: Iterable[Row]) -> None:
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    app()
