"""Search over several gateways, each of which holds a part of one catalog."""

from graphs.front_door import front_door

__all__, __getattr__, __dir__ = front_door("gateway.sharding", __file__)
