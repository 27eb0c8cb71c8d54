"""Stores of each kind, for the tests of what the plugin keeps in them, and the chat's stage."""

from tests.core.chat.conftest import openai, speaker, stage
from tests.core.storage.conformance.conftest import opened, store, wall
from tests.core.storage.conftest import open_database

__all__ = ["open_database", "openai", "opened", "speaker", "stage", "store", "wall"]
