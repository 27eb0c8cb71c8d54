from tests.core.storage.conformance.conftest import opened, store, wall

__all__ = ["opened", "store", "wall"]
