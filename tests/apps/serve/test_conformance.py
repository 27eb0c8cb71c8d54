"""The conformance suite of MCP, run against `gateway serve --http --expose all`."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.apps.serve.conftest import NODE, Script, node_env

STAMP = re.compile(r"-\d{4}-\d\d-\d\dT[\dZ-]+$")
"""Time stamp at the end of a result folder's name."""
LOGGING = frozenset({"logging-set-level", "tools-call-with-logging"})
"""Skipped scenarios about logging, which the protocol has deprecated."""
HANGING_UP = frozenset({"server-sse-polling"})
"""Skipped scenario that requires a server that disconnects by itself and stores events."""
Checks = Mapping[str, Mapping[str, str]]
MISSING: Mapping[str, frozenset[str]] = {
    "2025-11-25": LOGGING | HANGING_UP,
    "2026-07-28": frozenset(),
}


def run_suite(conformance: Script, url: str, folder: Path, *arguments: str) -> tuple[Checks, str]:
    """Run the conformance suite.

    Return the statuses of its checks, keyed by scenario, and its output.
    """
    ran = subprocess.run(
        [
            *(str(NODE / "node"), str(conformance), "server", "--url", url),
            *(*arguments, "--output-dir", str(folder)),
        ],
        env=node_env(),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    statuses: dict[str, dict[str, str]] = {}
    for written in folder.rglob("checks.json"):
        scenario = STAMP.sub("", written.parent.name.removeprefix("server-"))
        checks = json.loads(written.read_text(encoding="utf-8"))
        statuses[scenario] = {check["id"]: check["status"] for check in checks}
    return statuses, ran.stdout


@pytest.mark.parametrize("version", list(MISSING))
def test_conformance_suite_passes(
    conformance: Script, url: str, tmp_path: Path, version: str
) -> None:
    """The test runs all scenarios of the version, except the skipped ones above."""
    statuses, printed = run_suite(
        conformance, url, tmp_path, "--suite", "all", "--spec-version", version
    )

    assert len(statuses) >= 30, printed
    failed = {name for name, checks in statuses.items() if "FAILURE" in checks.values()}
    assert MISSING[version] == failed, printed


@pytest.mark.parametrize("scenario", ["enumeration", "manifest"])
def test_conformance_suite_for_skills_passes(
    conformance: Script, url: str, tmp_path: Path, scenario: str
) -> None:
    """The suites of the protocol versions do not include extensions such as skills."""
    statuses, printed = run_suite(
        conformance, url, tmp_path, "--scenario", f"sep-2640-skills-{scenario}"
    )

    (checks,) = statuses.values()
    assert "SUCCESS" in checks.values(), printed
    assert "FAILURE" not in checks.values(), printed
