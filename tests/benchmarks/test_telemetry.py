"""Spans and metrics of a conversation, compared with the documentation."""

from __future__ import annotations

import json

import typer
from typer.testing import CliRunner

from benchmarks.telemetry import PROMISES, main
from tests.metrics import documented


def test_conversation_sends_all_documented_telemetry() -> None:
    """A missing series would leave a panel empty without a reason."""
    app = typer.Typer()
    app.command()(main)
    figures = json.loads(CliRunner().invoke(app, ["--json"]).stdout)
    rows = documented()

    assert 40 < len(figures["found"])
    assert [] == figures["missing"]
    for line in PROMISES.read_text(encoding="utf-8").splitlines()[1:]:
        name, *keys = line.split()
        assert {*keys} <= rows[name].attributes
