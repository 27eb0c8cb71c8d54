"""The eligible set against exact search, over small catalogs."""

from __future__ import annotations

import json

import pytest

from benchmarks import registryfilters
from gateway.testing import HashingEmbedder


def test_who_is_eligible_is_found_whole_and_nobody_else() -> None:
    """At every density, also where a scan by codes would have to choose."""
    found = registryfilters.measure(
        counts=(150,), densities=(0.01, 0.1, 1.0), limits=(10,), asked=4
    )

    assert (1.0, 0, 1.0) == (found["lowest"], found["strangers"], found["full"])
    assert {"embeddings", "hybrid", "lexical"} == found["recall"].keys()
    assert ["150/0.01/10", "150/0.1/10", "150/1.0/10"] == [*found["recall"]["hybrid"]]


def test_another_embedder_may_be_given() -> None:
    """Such as the embedded model."""
    said: list[str] = []

    found = registryfilters.measure(
        counts=(20,),
        densities=(0.5,),
        limits=(5,),
        asked=2,
        embedder=HashingEmbedder(32),
        say=said.append,
    )

    assert (1.0, ["20 entities"]) == (found["lowest"], said)


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
        assert printed.startswith("20 entities")
        assert "lowest 1.0, strangers 0, full 1.0" in printed
