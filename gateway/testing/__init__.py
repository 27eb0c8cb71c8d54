"""Fakes that users need too: a scripted model, an embedder without a model, a store, a clock."""

from gateway.testing.embedder import HashingEmbedder
from gateway.testing.endpoint import Faults, Gate
from gateway.testing.fakes import ManualClock, TemporaryStore
from gateway.testing.model import Call, ModelRequest, Policy, Turn, script
from gateway.testing.server import ScriptedModel

__all__ = [
    "Call",
    "Faults",
    "Gate",
    "HashingEmbedder",
    "ManualClock",
    "ModelRequest",
    "Policy",
    "ScriptedModel",
    "TemporaryStore",
    "Turn",
    "script",
]
