from tests.core.chat.conftest import openai, speaker, stage
from tests.core.storage.conformance.conftest import opened, store, wall
from tests.core.storage.conftest import open_database

__all__ = ["open_database", "openai", "opened", "speaker", "stage", "store", "wall"]
