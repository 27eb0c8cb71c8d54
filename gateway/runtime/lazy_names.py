"""Names of a package that are imported on first use. The code is in the package `graphs`."""

from graphs.lazy_names import lazy_names

__all__ = ["lazy_names"]
