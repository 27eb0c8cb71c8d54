"""The front door: what `gateway` offers, and what it costs."""

from __future__ import annotations

from pathlib import Path

import pytest

import gateway

ROOT = Path(__file__).parents[1]


def test_public_names_are_sorted_and_load() -> None:
    """Whoever reads the list finds a name, and whoever uses one gets it."""
    assert sorted(dir(gateway)) == dir(gateway)
    for name in dir(gateway):
        value = getattr(gateway, name)
        ours = str(getattr(value, "__module__", "")).startswith("gateway")
        assert not ours or name == value.__name__


def test_the_front_door_stays_small() -> None:
    """What fewer programs need is imported from its own room."""
    assert len(dir(gateway)) <= 40


def test_an_unknown_name_is_an_attribute_error() -> None:
    """As with any other module."""
    with pytest.raises(AttributeError, match="no attribute 'Toolbox'"):
        _ = gateway.Toolbox  # type: ignore[attr-defined]  # (the point of the test)
