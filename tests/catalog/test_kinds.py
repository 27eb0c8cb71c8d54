"""The table of kinds."""

from __future__ import annotations

from typing import get_args

from gateway.catalog.kinds import KINDS, Field, row_of
from gateway.types import BuiltinKind


def test_every_kind_has_its_row() -> None:
    """What varies by kind stands here alone."""
    assert set(get_args(BuiltinKind)) == KINDS.keys()


def test_rows_name_known_fields_with_positive_weights() -> None:
    """A misspelt field would be searched by nobody."""
    for row in KINDS.values():
        assert set(get_args(Field)) >= {*row.embedded, *row.indexed}
        assert all(weight > 0 for weight in row.indexed.values())


def test_only_tools_can_be_called() -> None:
    """A skill or a prompt is found, and read by other ways."""
    assert ["tool"] == [kind for kind, row in KINDS.items() if row.callable]


def test_a_kind_that_the_host_declares_is_a_thing() -> None:
    """Nobody may call it, and what the host says of it is searched."""
    row = row_of("dataset")

    assert KINDS["tool"] is row_of("tool")
    assert not row.callable
    assert "metadata" in row.embedded
    assert "metadata" in row.indexed
