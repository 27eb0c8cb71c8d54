"""Names of a package that are imported on first use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module


def lazy_names(
    package: str, names: Mapping[str, str]
) -> tuple[list[str], Callable[[str], object], Callable[[], list[str]]]:
    """Return ``__all__``, ``__getattr__`` and ``__dir__`` of *package*.

    *names* are public names separated by spaces, keyed by submodule, or by the full name of another
    package's module.

    Example:
        >>> __all__, __getattr__, __dir__ = lazy_names("graphs.rdf", {"shapes": "validate"})
        >>> __all__
        ['validate']
    """
    modules = {
        name: module if "." in module else f"{package}.{module}"
        for module, listed in names.items()
        for name in listed.split()
    }
    every = sorted(modules)

    def load(name: str) -> object:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(modules[name]), name)

    return every, load, lambda: every
