"""Stores of each kind, for the tests of what the plugin keeps in them."""

from tests.core.storage.conformance.conftest import opened, store, wall
from tests.core.storage.conftest import open_database

__all__ = ["open_database", "opened", "store", "wall"]
