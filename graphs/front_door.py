"""The front door of a package: its public names, each loaded when it is first used."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path


def front_door(
    package: str, file: str
) -> tuple[list[str], Callable[[str], object], Callable[[], list[str]]]:
    """Return ``__all__``, ``__getattr__`` and ``__dir__`` of a package, so that a start pays for
    nothing that is not used.

    Args:
        package: Its name.
        file: Its ``__init__.py``; the ``.pyi`` beside it lists the names and their modules.
    """
    stub = Path(file).with_suffix(".pyi").read_text(encoding="utf-8")
    listed = re.findall(r"(?m)^from (\S+) import (\w+) as", stub)
    modules = {name: module for module, name in listed}

    def load(name: str) -> object:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(modules[name]), name)

    return sorted(modules), load, lambda: sorted(modules)
