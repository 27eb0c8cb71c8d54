"""Store fixtures of each kind, for the storage tests of the plugin."""

from tests.core.storage.conformance.conftest import opened, store, wall

__all__ = ["opened", "store", "wall"]
