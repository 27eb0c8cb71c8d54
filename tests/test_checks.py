"""What every object of options is checked for: the types here, the ranges in `test_config`."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from gateway import checks
from gateway.errors import ConfigError
from gateway.gateway import Gateway
from gateway.options import (
    CatalogOptions,
    ChatOptions,
    CustomKind,
    DiscoveryOptions,
    GraphOptions,
    IndexOptions,
    Options,
    SearchOptions,
    UpstreamOptions,
    UsageOptions,
)
from gateway.provision.options import ProvisionOptions
from tests.test_docs import OPTION_CLASSES

EVERY = [(kind, each.name) for kind in OPTION_CLASSES for each in fields(kind)]


@pytest.mark.parametrize(
    ("kind", "name"), EVERY, ids=[f"{kind.__name__}.{name}" for kind, name in EVERY]
)
def test_no_option_takes_what_is_not_of_its_type(kind: type[Any], name: str) -> None:
    """Whoever adds an option finds it here; none can be forgotten."""
    with pytest.raises(ConfigError, match=f"^{kind.__name__}: {name} must be .*, got "):
        kind(**{name: object()})


@pytest.mark.parametrize(
    ("kind", "given", "told"),
    [
        (Options, {"search": 3}, "search must be a SearchOptions, got 3"),
        (Options, {"capture_content": "yes"}, "capture_content must be True or False, got 'yes'"),
        (Options, {"index_path": "x"}, "index_path must be a pathlib.Path or None, got 'x'"),
        (SearchOptions, {"limit": "5"}, "limit must be a whole number, got '5'"),
        (SearchOptions, {"limit": 2.5}, "limit must be a whole number, got 2.5"),
        (SearchOptions, {"limit": True}, "limit must be a whole number, got True"),
        (SearchOptions, {"first_search": ["words"]}, "first_search must be a text, got ['words']"),
        (SearchOptions, {"first_search": "now"}, "first_search must be wait or words, got 'now'"),
        (GraphOptions, {"groups": 1}, "groups must be True or False, got 1"),
        (IndexOptions, {"saved": None}, "saved must be True or False, got None"),
        (UsageOptions, {"refresh_s": "1"}, "refresh_s must be a number, got '1'"),
        (ChatOptions, {"max_tokens": 1.5}, "max_tokens must be a whole number or None, got 1.5"),
        (
            CatalogOptions,
            {"kinds": {"a": 3}},
            "kinds must be a Mapping, each of its values a CustomKind, got {'a': 3}",
        ),
        (
            UpstreamOptions,
            {"private_hosts": "h"},
            "private_hosts must be a tuple of texts, got 'h'",
        ),
        (UpstreamOptions, {"private_hosts": (3,)}, "private_hosts must be a tuple of texts"),
        (ProvisionOptions, {"namespaces": (3,)}, "namespaces must be a tuple of texts, got (3,)"),
        (
            DiscoveryOptions,
            {"search_name": [], "call_name": 7},
            "search_name must be a text, got []; call_name must be a text, got 7",
        ),
        (
            SearchOptions,
            {"limit": "5", "max_queries": 0},
            "limit must be a whole number, got '5'; max_queries must be at least 1, got 0",
        ),
        (
            SearchOptions,
            {"limit": np.array([1, 2]), "first_search": np.array([1])},
            "limit must be a whole number, got array([1, 2]); first_search must be a text, got ",
        ),
        (UsageOptions, {"record": np.True_}, "record must be True or False, got "),
        (UsageOptions, {"refresh_s": np.True_}, "refresh_s must be a number, got "),
    ],
)
def test_a_wrong_type_is_told_in_plain_words(
    kind: type[Any], given: dict[str, Any], told: str
) -> None:
    """With the name, what it takes and what it got; several at once."""
    with pytest.raises(ConfigError) as caught:
        kind(**given)

    assert str(caught.value).startswith(f"{kind.__name__}: {told}")


def test_numbers_of_any_make_are_numbers() -> None:
    """An evaluation reads its settings from arrays."""
    given = SearchOptions(limit=int(np.int64(7)), lexical_weight=1)
    read = SearchOptions(limit=np.int64(7), min_confidence=np.float32(0.5))  # type: ignore[arg-type]  # (numpy's)

    assert (7, 7) == (given.limit, read.limit)
    assert {"a": CustomKind()} == CatalogOptions(kinds={"a": CustomKind()}).kinds
    assert ("a/*",) == ProvisionOptions(namespaces=("a/*",)).namespaces


def test_a_range_is_told_of_what_has_the_right_type() -> None:
    assert "" == checks.at_least("a", "x", 1)  # type: ignore[arg-type]  # (the point)
    assert "" == checks.between("a", np.array([1, 2]), 0, 1)  # type: ignore[arg-type]  # (the point)
    assert "" == checks.share("a", None)  # type: ignore[arg-type]  # (the point)


def test_options_of_a_part_are_not_taken_for_all() -> None:
    """Where they are given, not at the first search."""
    with pytest.raises(ConfigError, match=r"options must be an Options\(…\), got SearchOptions"):
        Gateway(options=SearchOptions())  # type: ignore[arg-type]  # (the point)


NUMBERS = [
    (kind, each.name)
    for kind in OPTION_CLASSES
    for each in fields(kind)
    if each.type in {"int", "float", "int | None", "float | None"}
]


@pytest.mark.parametrize(
    ("kind", "name"), NUMBERS, ids=[f"{kind.__name__}.{name}" for kind, name in NUMBERS]
)
def test_no_option_takes_a_number_below_nothing(kind: type[Any], name: str) -> None:
    """There is none for which it would mean anything; whoever adds an option finds it here."""
    with pytest.raises(ConfigError, match=f"{kind.__name__}: .*{name} must be .*, got -1"):
        kind(**{name: -1})
