"""What every `Store` promises as a whole."""

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


def test_what_is_kept_is_there_after_closing(opened: Opener) -> None:
    """For the same store, and for another of the same place."""
    store = opened()
    store.vectors.put("m", {"a": np.ones(2, np.float32)})
    store.entries.put([Entry(kind="agent", name="a")])
    store.listings.keep("f", "srv", Listing())
    store.close()
    store.close()

    for each in (store, opened()):
        assert ["a"] == list(each.vectors.get("m", ["a"]))
        assert ["agent:catalog/a"] == list(each.entries.rows())
        assert each.listings.listing("f") is not None


def test_a_text_that_is_no_unicode_is_refused_and_nothing_of_its_batch_is_kept(
    store: Store,
) -> None:
    """Half of a surrogate pair, as JSON may have it. The store works on."""
    vector = np.ones(2, np.float32)

    with pytest.raises(StoreError):
        store.vectors.put("m", {"good": vector, "half \ud800": vector})
    with pytest.raises(StoreError):
        store.entries.put_rules({"good": "{}", "\ud800": "{}"})

    assert {} == store.vectors.get("m", ["good"]) == dict(store.entries.rules())


def test_nothing_is_lost_between_threads(store: Store) -> None:
    """All of them write everything, and read while others write."""

    def work(thread: int) -> bool:
        whole = True
        for at in range(ROUNDS):
            name = f"{thread}-{at}"
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

    names = [f"{thread}-{at}" for thread in range(THREADS) for at in range(ROUNDS)]
    assert set(names) == store.vectors.get("m", names).keys()
    assert {f"agent:catalog/{name}" for name in names} == store.entries.rows().keys()
    assert set(names) == store.listings.record_seen("o", dict.fromkeys(names, "other"))
