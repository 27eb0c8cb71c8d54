"""The gateway: tool discovery for LLM agents.

The names that most programs need. The others stand in `gateway.types`, `gateway.options`,
`gateway.errors`, `gateway.adapters` and `gateway.testing`.
"""

from graphs.front_door import front_door

__all__, __getattr__, __dir__ = front_door("gateway", __file__)
