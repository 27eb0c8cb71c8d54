"""Tests of all implementations of `Store`."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from gateway.catalog import Entry
from gateway.errors import StoreError
from gateway.storage import Store
from gateway.types import Listing
from tests.core.storage.conformance.stores import Opener

THREADS = 8
ROUNDS = 5


def test_closed_store_makes_its_data_available_again(opened: Opener) -> None:
    """The closed store opens again, and another store at the same place has the same data."""
    store = opened()
    store.vectors.put("m", {"a": np.ones(2, np.float32)})
    store.entries.put([Entry(kind="agent", name="a")])
    store.listings.keep("f", "srv", Listing())
    store.close()
    store.close()

    for reopened in (store, opened()):
        assert ["a"] == list(reopened.vectors.get("m", ["a"]))
        assert ["agent:catalog/a"] == list(reopened.entries.rows())
        assert reopened.listings.listing("f") is not None


def test_put_refuses_all_entries_if_one_has_a_lone_surrogate(store: Store) -> None:
    """JSON allows lone surrogates, UTF-8 does not. The store stays usable."""
    vector = np.ones(2, np.float32)

    with pytest.raises(StoreError):
        store.vectors.put("m", {"good": vector, "half \ud800": vector})
    with pytest.raises(StoreError):
        store.entries.put_rules({"good": "{}", "\ud800": "{}"})

    assert {} == store.vectors.get("m", ["good"]) == dict(store.entries.rules())


def test_store_loses_no_data_with_concurrent_threads(store: Store) -> None:
    """All threads write all keys, and read while others write."""

    def work(thread: int) -> bool:
        whole = True
        for number in range(ROUNDS):
            name = f"{thread}-{number}"
            store.vectors.put("m", {name: np.full(8, thread, np.float32)})
            store.entries.put([Entry(kind="agent", name=name)])
            store.listings.keep(name, "srv", Listing(digests={"a": name}))
            store.listings.record_seen("o", {name: name})
            recorded = store.listings.listing(name)
            whole &= recorded is not None and recorded.listing.digests == {"a": name}
            whole &= store.vectors.get("m", [name])[name].tolist() == [thread] * 8
        return whole

    with ThreadPoolExecutor(THREADS) as pool:
        assert all(pool.map(work, range(THREADS)))

    names = [f"{thread}-{number}" for thread in range(THREADS) for number in range(ROUNDS)]
    assert set(names) == store.vectors.get("m", names).keys()
    assert {f"agent:catalog/{name}" for name in names} == store.entries.rows().keys()
    assert set(names) == store.listings.record_seen("o", dict.fromkeys(names, "other"))
