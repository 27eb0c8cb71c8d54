"""Markdown-LD graphs: documents, facts, text search and typed neighbours."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

_STUB = Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")
_MODULES = {name: module for module, name in re.findall(r"(?m)^from (\S+) import (\w+) as", _STUB)}
"""The module of each public name, as `__init__.pyi` lists it."""

__all__ = sorted(_MODULES)  # noqa: PLE0605  (a list of names all the same)


def __getattr__(name: str) -> object:
    """Load a public name when it is first used, so that a start pays for nothing else."""
    if name not in _MODULES:
        raise AttributeError(f"module 'graphs' has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    """List the public names."""
    return list(__all__)
