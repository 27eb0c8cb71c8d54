"""The front door."""

from __future__ import annotations

import graphs


def test_the_public_names_are_sorted_and_there() -> None:
    """A public name is one in ``__all__``."""
    assert sorted(graphs.__all__) == graphs.__all__
    assert [] == [name for name in graphs.__all__ if not hasattr(graphs, name)]
