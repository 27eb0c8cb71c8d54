"""Call log in a store of the host."""

from __future__ import annotations

from pathlib import Path

from gateway import Gateway, Options, SyncGateway
from gateway.options import UsageOptions
from gateway.plugins.usage import call_log_of
from gateway.testing import HashingEmbedder, TemporaryStore
from tests.core.storage.test_store import look


def test_store_of_the_host_receives_all_data_and_no_file_is_created(tmp_path: Path) -> None:
    store = TemporaryStore()
    options = Options(
        vector_store_path=tmp_path / "v.db",
        catalog_store_path=tmp_path / "c.db",
        usage=UsageOptions(record=True),
    )
    gateway = Gateway(strategy="auto", embedder=HashingEmbedder(64), store=store, options=options)
    gateway.add_tool(look)
    with SyncGateway(gateway) as blocking:
        blocking.search("look")
        blocking.invoke("local/look")

    assert ["local/look"] == [line["tool"] for line in call_log_of(store).lines()]
    assert [] == list(tmp_path.iterdir())
