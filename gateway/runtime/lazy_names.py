from graphs.lazy_names import lazy_names

__all__ = ["lazy_names"]
