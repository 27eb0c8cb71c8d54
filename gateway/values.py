"""`dataclass` for the gateway; see `graphs.values`."""

from __future__ import annotations

from graphs.values import dataclass

__all__ = ["dataclass"]
