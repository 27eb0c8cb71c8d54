"""The eligible entities against exact search, over small catalogs."""

from __future__ import annotations

import json

import pytest

from benchmarks import registryfilters
from gateway.testing import HashingEmbedder


def test_all_eligible_entities_are_found_and_no_others() -> None:
    """At every density."""
    figures = registryfilters.measure(
        counts=(150,), densities=(0.01, 0.1, 1.0), limits=(10,), query_count=4
    )

    assert (1.0, 0) == (figures["lowest"], figures["strangers"])
    assert ["150/0.01/10", "150/0.1/10", "150/1.0/10"] == [*figures["recall"]["lexical"]]


def test_another_embedder_may_be_given() -> None:
    """Such as the embedded model."""
    figures = registryfilters.measure(
        counts=(20,), densities=(0.5,), limits=(5,), query_count=2, embedder=HashingEmbedder(32)
    )

    assert 1.0 == figures["lowest"]


@pytest.mark.parametrize("flags", [["--json"], []])
def test_the_command_prints_what_was_measured(
    flags: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """For a person, or for a program."""
    registryfilters.main(["--counts", "20", "--queries", "1", *flags])
    printed = capsys.readouterr().out

    if flags:
        assert 1.0 == json.loads(printed)["lowest"]
    else:
        assert "lowest 1.0, strangers 0" in printed
