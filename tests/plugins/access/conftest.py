"""Stores of each kind, for the tests of what the plugin keeps in them."""

from tests.core.storage.conformance.conftest import opened, store, wall

__all__ = ["opened", "store", "wall"]
