"""The promise of what a conversation sends is kept, and is what the document says."""

from __future__ import annotations

import json

import typer
from typer.testing import CliRunner

from benchmarks.telemetry import PROMISES, main
from tests.metrics import documented


def test_one_conversation_sends_all_that_is_promised() -> None:
    """A series that is never sent leaves a panel empty, and nobody knows why."""
    app = typer.Typer()
    app.command()(main)
    figures = json.loads(CliRunner().invoke(app, ["--json"]).stdout)
    rows = documented()

    assert 40 < len(figures["found"])
    assert [] == figures["missing"]
    for line in PROMISES.read_text(encoding="utf-8").splitlines()[1:]:
        name, *keys = line.split()
        assert {*keys} <= rows[name].attributes
