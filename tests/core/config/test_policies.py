"""The list of policies in an ``mcp.json``."""

from __future__ import annotations

import pytest

from gateway.config.mcp_json import parse_manifest
from gateway.errors import ConfigError
from gateway.options import AccessPolicy


def test_policies_in_the_configuration_keep_their_order() -> None:
    """Keys of the file are the names of the option's fields."""
    policies = [
        {"action": "deny", "tools": ["*/delete_*"], "users": ["b*"]},
        {"action": "limit", "calls": 3, "cost": 2, "per": "day", "by": []},
    ]

    manifest = parse_manifest({"mcpServers": {}, "policies": policies})

    assert (
        AccessPolicy(action="deny", tools=("*/delete_*",), users=("b*",)),
        AccessPolicy(action="limit", calls=3, cost=2.0, per="day", by=()),
    ) == manifest.policies
    assert () == manifest.warnings


@pytest.mark.parametrize(
    ("policies", "message"),
    [
        ({}, "'policies' must be a list"),
        ([{"tools": ["*"]}], "policy 1 must be an object with an 'action'"),
        ([{"action": "deny", "tool": ["*"]}], "policy 1: unknown key 'tool'"),
        ([{"action": "deny"}, {"action": "deny", "tools": "*"}], "policy 2: expected"),
        ([{"action": "limit"}], "policy 1: AccessPolicy: limit needs calls or cost"),
        ([{"action": "deny", "scopes": [1]}], "policy 1: expected"),
    ],
)
def test_invalid_policy_makes_the_whole_configuration_invalid(
    policies: object, message: str
) -> None:
    """Ignoring a policy would allow more than the host wants."""
    with pytest.raises(ConfigError, match=message):
        parse_manifest({"mcpServers": {}, "policies": policies})
