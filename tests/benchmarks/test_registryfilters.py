"""Filtered entities compared with exact search, over small catalogs."""

from __future__ import annotations

from benchmarks import registryfilters


def test_filtered_search_finds_all_eligible_entities_and_no_others() -> None:
    """This holds for any share of eligible entities."""
    figures = registryfilters.measure(
        counts=(150,), densities=(0.01, 0.1, 1.0), limits=(10,), query_count=4
    )

    assert (1.0, 0) == (figures["lowest"], figures["strangers"])
    assert ["150/0.01/10", "150/0.1/10", "150/1.0/10"] == [*figures["recall"]["lexical"]]
