"""The protocol's own conformance suite against `gateway serve --http --expose all`."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.serve.conftest import NODE, Script, node_env

STAMP = re.compile(r"-\d{4}-\d\d-\d\dT[\dZ-]+$")
"""When a scenario was run: the end of its folder's name."""
LOGGING = frozenset({"logging-set-level", "tools-call-with-logging"})
"""Not passed through: the protocol has deprecated it."""
HANGING_UP = frozenset({"server-sse-polling"})
"""Needs a server that hangs up by itself and keeps events."""
MISSING: Mapping[str, frozenset[str]] = {
    "2025-11-25": LOGGING | HANGING_UP,
    "2026-07-28": frozenset(),
}


@pytest.mark.parametrize("version", list(MISSING))
def test_the_suite_passes(conformance: Script, url: str, tmp_path: Path, version: str) -> None:
    """Every scenario that the version has, but for those whose reason stands above."""
    arguments = ["server", "--url", url, "--suite", "all", "--spec-version", version]
    ran = subprocess.run(
        [str(NODE / "node"), str(conformance), *arguments, "--output-dir", str(tmp_path)],
        env=node_env(),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    failed: dict[str, list[str]] = {}
    for written in tmp_path.rglob("checks.json"):
        scenario = STAMP.sub("", written.parent.name.removeprefix("server-"))
        checks = json.loads(written.read_text(encoding="utf-8"))
        failed[scenario] = [each["id"] for each in checks if each["status"] == "FAILURE"]

    assert len(failed) >= 30, ran.stdout
    assert MISSING[version] == {each for each, ids in failed.items() if ids}, ran.stdout
