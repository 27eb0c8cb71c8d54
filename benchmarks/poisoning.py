"""How many poisoned definitions the scanner flags, and how many honest ones.

    python -m benchmarks.poisoning --data SET… --json

A set is a folder in the common format, or a file with one definition a line. The cases of
`tests/cases/poisoning` are always measured: one half was tuned on, the other was not read.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Annotated, cast

import typer

from benchmarks.data import rows
from benchmarks.tables import print_figures
from gateway.mcp.injection_scanner import scan_definition
from gateway.types import JsonObject

app = typer.Typer(add_completion=False)

CASES = Path(__file__).parents[1] / "tests" / "cases" / "poisoning"
_KEYS = {"input_schema": "inputSchema", "output_schema": "outputSchema"}
_PARTS = ("name", "title", "description", "inputSchema", "outputSchema")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One definition of the own set."""

    tool: JsonObject
    language: str
    channel: str
    """The part of the definition that holds the attack; ``tool`` for an honest one."""
    technique: str

    @property
    def is_tuned(self) -> bool:
        """Whether it is in the half that the scanner was tuned on."""
        text = json.dumps(self.tool, sort_keys=True)
        return int(hashlib.sha256(text.encode()).hexdigest(), 16) % 2 == 0


@app.command()
def main(
    *,
    data: Annotated[list[Path] | None, typer.Option(help="Sets of honest definitions.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print every digit.")] = False,
) -> None:
    """Print the flagged shares, and what a definition costs."""
    figures: dict[str, object] = {}
    for name in ("poisoned", "hard"):
        cases = read_cases(name)
        figures |= {f"{name}.count": len(cases)} | shares(name, cases)
    honest = [tool for path in data or () for tool in read_tools(path)]
    for path in data or ():
        tools = list(read_tools(path))
        figures[f"honest.{path.stem}"] = flagged_share(tools)
        figures[f"honest.{path.stem}.count"] = len(tools)
    if honest:
        figures["honest.all"] = flagged_share(honest)
        started = time.process_time()
        flagged_share(honest)
        figures["milliseconds_a_tool"] = (time.process_time() - started) * 1000 / len(honest)
    print_figures(figures, as_json=as_json)


def read_cases(name: str) -> list[Case]:
    """Return the own cases of the file *name*."""
    return [
        Case(
            tool=cast("JsonObject", row["tool"]),
            language=str(row["lang"]),
            channel=str(row["channel"]),
            technique=str(row["technique"]),
        )
        for row in rows(CASES / f"{name}.jsonl")
    ]


def read_tools(path: Path) -> Iterable[JsonObject]:
    """Yield the definitions of *path* with the protocol's keys, and of those only what is read."""
    for row in rows(path / "catalog.jsonl" if path.is_dir() else path):
        tool = {_KEYS.get(key, key): value for key, value in row.items()}
        yield {key: tool[key] for key in _PARTS if tool.get(key)}


def shares(name: str, cases: Sequence[Case]) -> dict[str, object]:
    """Return the flagged share of each half, and of each channel, language and technique."""
    groups: defaultdict[str, list[JsonObject]] = defaultdict(list)
    for case in cases:
        groups[f"{name}.{'tuned' if case.is_tuned else 'unread'}"].append(case.tool)
        for part in ("channel", "language", "technique"):
            groups[f"{name}.{part}.{getattr(case, part)}"].append(case.tool)
    return {group: flagged_share(tools) for group, tools in sorted(groups.items())}


def flagged_share(tools: Sequence[JsonObject]) -> float:
    """Return the share of *tools* that the scanner flags."""
    return mean(bool(scan_definition(tool)) for tool in tools)


if __name__ == "__main__":
    app()
