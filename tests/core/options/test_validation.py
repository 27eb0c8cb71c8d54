"""Validation of the types and ranges of options."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from gateway.errors import ConfigError
from gateway.gateway import Gateway
from gateway.options import (
    CatalogOptions,
    ChatOptions,
    CustomKind,
    DiscoveryOptions,
    IndexOptions,
    Options,
    SearchOptions,
    UpstreamOptions,
    UsageOptions,
)
from gateway.options.provision import ProvisionOptions
from tests.test_docs import OPTION_CLASSES

EVERY = [(kind, field.name) for kind in OPTION_CLASSES for field in fields(kind)]


@pytest.mark.parametrize(
    ("kind", "name"), EVERY, ids=[f"{kind.__name__}.{name}" for kind, name in EVERY]
)
def test_options_refuse_values_of_other_types(kind: type[Any], name: str) -> None:
    """Each field of each option class is tried. The message shows the value, unless it may be a
    secret.
    """
    (is_shown,) = (field.repr for field in fields(kind) if field.name == name)
    ending = ", got " if is_shown else "$"
    with pytest.raises(ConfigError, match=f"^{kind.__name__}: {name}: [^,]*.*{ending}"):
        kind(**{name: object()})


@pytest.mark.parametrize(
    ("kind", "values", "message"),
    [
        (Options, {"search": 3}, "search: expected SearchOptions, got 3"),
        (Options, {"capture_content": "yes"}, "capture_content: expected bool, got 'yes'"),
        (SearchOptions, {"limit": "5"}, "limit: expected int from 1, got '5'"),
        (SearchOptions, {"limit": 2.5}, "limit: expected int from 1, got 2.5"),
        (SearchOptions, {"limit": True}, "limit: expected int from 1, got True"),
        (SearchOptions, {"limit": 60}, "max_limit must be at least limit (60)"),
        (
            SearchOptions,
            {"first_search": "now"},
            "first_search: expected 'auto' or 'wait' or 'words'",
        ),
        (UpstreamOptions, {"backoff_s": 9.0}, "backoff_max_s must be at least backoff_s"),
        (IndexOptions, {"saved": None}, "saved: expected bool, got None"),
        (ChatOptions, {"max_tokens": 1.5}, "max_tokens: expected int from 1 or None, got 1.5"),
        (CatalogOptions, {"kinds": {"a": 3}}, "kinds: expected "),
        (UpstreamOptions, {"private_hosts": "h"}, "private_hosts: expected tuple[str, ...], got"),
        (ProvisionOptions, {"namespaces": (3,)}, "namespaces: expected tuple[str, ...], got"),
        (
            SearchOptions,
            {"limit": "5", "max_queries": 0},
            "limit: expected int from 1, got '5'; max_queries: expected int from 1, got 0",
        ),
        (SearchOptions, {"limit": np.array([1, 2])}, "limit: expected int from 1"),
        (UsageOptions, {"record": np.True_}, "record: expected bool, got "),
        (UsageOptions, {"record_queries": True}, "record_queries needs record"),
        (DiscoveryOptions, {"search_name": []}, "search_name: expected str, got []"),
    ],
)
def test_config_error_names_each_invalid_option_and_its_value(
    kind: type[Any], values: dict[str, Any], message: str
) -> None:
    """One message contains all faults of an option object."""
    with pytest.raises(ConfigError) as caught:
        kind(**values)

    assert str(caught.value).startswith(f"{kind.__name__}: {message}")


def test_options_keep_values_of_the_right_type() -> None:
    """A float option accepts an integer."""
    kinds = {"a": CustomKind()}

    assert 1 == SearchOptions(lexical_weight=1).lexical_weight
    assert kinds == CatalogOptions(kinds=kinds).kinds
    assert ("a/*",) == ProvisionOptions(namespaces=("a/*",)).namespaces


def test_gateway_refuses_the_options_of_one_subsystem() -> None:
    with pytest.raises(ConfigError, match=r"options must be an Options\(…\), got SearchOptions"):
        Gateway(options=SearchOptions())  # type: ignore[arg-type]  # (the point)


NUMBERS = [
    (kind, field.name)
    for kind in OPTION_CLASSES
    for field in fields(kind)
    if isinstance(field.default, int | float) and not isinstance(field.default, bool)
]


@pytest.mark.parametrize(
    ("kind", "name"), NUMBERS, ids=[f"{kind.__name__}.{name}" for kind, name in NUMBERS]
)
def test_options_refuse_negative_numbers(kind: type[Any], name: str) -> None:
    with pytest.raises(ConfigError, match=f"{kind.__name__}: {name}: .*, got -1"):
        kind(**{name: -1})
