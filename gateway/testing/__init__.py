"""Fakes for tests of hosts."""

from gateway.testing.embedder import HashingEmbedder as HashingEmbedder
from gateway.testing.endpoint import Faults as Faults
from gateway.testing.endpoint import Gate as Gate
from gateway.testing.fakes import ManualClock as ManualClock
from gateway.testing.fakes import TemporaryStore as TemporaryStore
from gateway.testing.model import Call as Call
from gateway.testing.model import ModelRequest as ModelRequest
from gateway.testing.model import Policy as Policy
from gateway.testing.model import Turn as Turn
from gateway.testing.model import script as script
from gateway.testing.server import ScriptedModel as ScriptedModel
from gateway.testing.tool_rules import find_tool_faults as find_tool_faults
