"""Public function-calling sets, converted to folders in the common format.

    python -m benchmarks.converted bfcl PACKAGE/data --out DIR
    python -m benchmarks.converted agentdojo --out DIR
    python -m benchmarks.converted tooltalk PACKAGE/tooltalk --out DIR
    python -m benchmarks.converted tau2 PACKAGE/tau2 --out DIR
    python -m benchmarks.converted homeassistant PACKAGE --out DIR

* The sets come from packages, none of which is a dependency. Most are read from their unpacked
  folders; agentdojo, and hassil for home-assistant-intents, must be installed.
* `benchmarks.sources` has a module for each package, which says what its tools and queries are.
* ``origin.txt`` names the group of sets that belong together; `benchmarks.generalize` reads it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from benchmarks.data import ORIGIN_FILE
from benchmarks.sources import agentdojo as agentdojo_source
from benchmarks.sources import bfcl as bfcl_source
from benchmarks.sources import homeassistant as homeassistant_source
from benchmarks.sources import tau2 as tau2_source
from benchmarks.sources import tooltalk as tooltalk_source
from benchmarks.sources.rows import ConvertedSet, Row

_Out = Annotated[Path, typer.Option(help="Where the folders of the sets go.")]

app = typer.Typer(no_args_is_help=True, add_completion=False)


@app.callback()
def main() -> None:
    """Convert public sets to the common format."""


@app.command()
def bfcl(
    data: Annotated[Path, typer.Argument(help="The data folder of bfcl-eval.")], out: _Out
) -> None:
    """Convert the sets of the Berkeley Function Calling Leaderboard."""
    for name, categories in bfcl_source.FUNCTION_SETS.items():
        write_set(out / name, bfcl_source.convert_functions(data, categories), origin="bfcl")
    conversations = bfcl_source.convert_conversations(data)
    write_set(out / bfcl_source.CONVERSATION_SET, conversations, origin="bfcl")


@app.command()
def agentdojo(out: _Out) -> None:
    """Convert the tasks of AgentDojo, which must be installed."""
    module = import_installed("agentdojo.task_suite.load_suites")
    suites = module.get_suites(agentdojo_source.SUITES_VERSION)
    write_set(out / "agentdojo", agentdojo_source.convert_tasks(suites), origin="agentdojo")


@app.command()
def tooltalk(
    package: Annotated[Path, typer.Argument(help="The tooltalk folder of nvidia-tooltalk.")],
    out: _Out,
) -> None:
    """Convert the conversations of ToolTalk."""
    write_set(out / "tooltalk", tooltalk_source.convert_conversations(package), origin="tooltalk")


@app.command()
def tau2(
    package: Annotated[Path, typer.Argument(help="The tau2 folder of inspect-evals.")], out: _Out
) -> None:
    """Convert the customers of τ²-bench."""
    write_set(out / "tau2", tau2_source.convert_customers(package), origin="tau2")


@app.command()
def homeassistant(
    package: Annotated[Path, typer.Argument(help="The folder of home-assistant-intents.")],
    out: _Out,
) -> None:
    """Convert commands for Home Assistant; hassil must be installed."""
    commands = homeassistant_source.convert_commands(package, import_installed("hassil"))
    write_set(out / "home_assistant", commands, origin="home_assistant")


def import_installed(module: str) -> Any:
    """Import a module of a package that is no dependency.

    Raises:
        typer.BadParameter: The package is not installed.
    """
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise typer.BadParameter(f"{package} is not installed in this environment") from error


def write_set(folder: Path, converted: ConvertedSet, *, origin: str) -> None:
    """Write *converted* and the name of its *origin* into *folder*, made if it is not there."""
    folder.mkdir(parents=True, exist_ok=True)
    _write_lines(folder / "catalog.jsonl", converted.tools)
    _write_lines(folder / "queries.jsonl", converted.queries)
    (folder / ORIGIN_FILE).write_text(f"{origin}\n", encoding="utf-8")
    counts = f"{len(converted.tools)} tools, {len(converted.queries)} queries"
    Console(stderr=True).print(f"{folder.name}: {counts}")


def _write_lines(path: Path, rows: Iterable[Row]) -> None:
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    app()
