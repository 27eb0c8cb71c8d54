"""Markdown-LD graphs: documents, facts, text search and typed neighbours."""

from graphs.front_door import front_door

__all__, __getattr__, __dir__ = front_door("graphs", __file__)
