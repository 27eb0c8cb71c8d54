"""The promise of what a conversation sends is kept, and is what the document says."""

from __future__ import annotations

from benchmarks.telemetry import PROMISES, sent
from tests.metrics import documented


def test_one_conversation_sends_all_that_is_promised() -> None:
    """A series that is never sent leaves a panel empty, and nobody knows why."""
    lines = [line.split() for line in PROMISES.read_text(encoding="utf-8").splitlines()[1:]]
    promised = {(name, *key) for name, *keys in lines for key in ((), *((key,) for key in keys))}
    rows = documented()

    assert 40 < len(promised)
    assert set() == promised - set(sent())
    for name, *keys in lines:
        assert {*keys} <= rows[name].attributes
