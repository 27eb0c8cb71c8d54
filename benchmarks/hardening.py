"""The figures of hardening: threats, poisoned definitions, floods.

    python -m benchmarks.hardening --data SET… --json

* A threat of `tests/threats.py` passes if each of its tests ran and none failed.
* `poison_flagged` is the share of the own poisoned definitions that the scanner flags, of the half
  that it was not tuned on; `honest_flagged` that of the honest definitions in the sets of
  ``--data``, or without any of the own hard ones, of the same half.
* Floods are those of `benchmarks.floods`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any
from xml.etree import ElementTree as ET

import typer

from benchmarks import floods
from benchmarks.flood_server import FLOODS
from benchmarks.poisoning import flagged_share, read_cases, read_tools, shares
from benchmarks.tables import print_figures, print_table
from tests.threats import THREATS, Threat

app = typer.Typer(add_completion=False)

ROOT = Path(__file__).parents[1]
_RAN = (0, 1)
"""The exit codes of pytest after a run: all passed, or some failed."""
_STDERR = 2


@app.command()
def main(
    *,
    data: Annotated[list[Path] | None, typer.Option(help="Sets of honest definitions.")] = None,
    threat: Annotated[list[str] | None, typer.Option(help="Only this threat.")] = None,
    flood: Annotated[list[str] | None, typer.Option(help="Only this flood.")] = None,
    seconds: Annotated[float, typer.Option(help="How long each flood lasts.")] = 5.0,
    rounds: Annotated[int, typer.Option(help="How many times each flood begins anew.")] = 2,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Run the tests of the threats, measure, and print the figures."""
    if unknown := {*(threat or ())} - THREATS.keys() | {*(flood or ())} - {*FLOODS}:
        raise typer.BadParameter(f"unknown: {', '.join(sorted(unknown))}")
    threats = {name: THREATS[name] for name in threat or THREATS}
    lost = losing(threats, run_tests(threats))
    report = floods.measure(flood or FLOODS, seconds=seconds, rounds=rounds)
    figures: dict[str, object] = {
        "threats": len(threats),
        "passing": len(threats) - len({row["threat"] for row in lost}),
        **scanned(data or ()),
        **{name: figure for name, figure in report.items() if name != "rows"},
    }
    if not as_json:
        print_table("Floods", report["rows"])
        if lost:
            print_table("Threats that do not pass", lost)
    print_figures(figures, as_json=as_json)


def run_tests(threats: Mapping[str, Threat], root: Path = ROOT) -> dict[str, str]:
    """Run the tests of *threats* in one process; return the outcome of each test that ran.

    Args:
        threats: What is tested.
        root: Its folder ``tests`` holds the tests.

    Returns:
        By the id of the test: ``failed`` if any of its cases failed, else ``passed`` if any
        passed, else ``skipped``.

    Raises:
        RuntimeError: pytest could not run.
    """
    ids = dict.fromkeys(f"tests/{test}" for each in threats.values() for test in each.tests)
    env = {name: text for name, text in os.environ.items() if not name.startswith("PYTEST_")}
    with TemporaryDirectory() as folder:
        written = Path(folder, "results.xml")
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        # The plugin of schemathesis is long in loading, and no test uses it.
        command += ["-p", "no:schemathesis"]
        command += [f"--rootdir={root}", f"--junit-xml={written}", *ids]
        code = subprocess.run(command, cwd=root, env=env, stdout=_STDERR, check=False).returncode
        if code not in _RAN:
            raise RuntimeError(f"pytest ended with {code}")
        return _outcomes(ET.parse(written))  # noqa: S314  (just written)


def _outcomes(results: Any) -> dict[str, str]:
    cases = defaultdict[str, set[str]](set)
    for case in results.iter("testcase"):
        file = case.get("classname").removeprefix("tests.").replace(".", "/")
        test = f"{file}.py::{case.get('name').partition('[')[0]}"
        found = {child.tag for child in case}
        bad = "failed" if found & {"failure", "error"} else ""
        cases[test].add(bad or ("skipped" if "skipped" in found else "passed"))
    order = ("failed", "passed", "skipped")
    return {test: min(found, key=order.index) for test, found in cases.items()}


def losing(threats: Mapping[str, Threat], outcomes: Mapping[str, str]) -> list[dict[str, str]]:
    """Return a row for each test of *threats* that did not pass; one that did not run is named."""
    return [
        {"threat": name, "test": test, "outcome": outcomes.get(test, "did not run")}
        for name, each in threats.items()
        for test in each.tests
        if outcomes.get(test) != "passed"
    ]


def scanned(sets: Sequence[Path]) -> dict[str, object]:
    """Return the flagged shares of poisoned and of honest definitions."""
    honest = [tool for path in sets for tool in read_tools(path)]
    hard = shares("hard", read_cases("hard"))["hard.unread"]
    poisoned = shares("poisoned", read_cases("poisoned"))["poisoned.unread"]
    return {"poison_flagged": poisoned, "honest_flagged": flagged_share(honest) if honest else hard}


if __name__ == "__main__":
    app()
