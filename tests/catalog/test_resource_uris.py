"""Addresses lead back to their server, whatever it calls its things."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.catalog.identity import entity_id, from_gateway_uri, to_gateway_uri
from gateway.mcp.naming import matches_template
from gateway.types import Kind

servers = st.from_regex(r"[A-Za-z0-9_.-]{1,64}", fullmatch=True)
kinds: st.SearchStrategy[Kind] = st.sampled_from(["resource", "prompt"])


@given(kinds, servers, st.text())
def test_an_address_leads_back(kind: Kind, server: str, name: str) -> None:
    """By itself: without a table, for any text."""
    assert (server, name) == from_gateway_uri(kind, to_gateway_uri(kind, server, name))


@given(servers, st.text(), servers, st.text(), kinds, kinds)
def test_no_two_things_have_one_address(
    server: str, name: str, other: str, others: str, kind: Kind, their: Kind
) -> None:
    """Nor one id."""
    same = (kind, server, name) == (their, other, others)

    assert same == (entity_id(kind, server, name) == entity_id(their, other, others))
    if kind == their:
        assert same == (to_gateway_uri(kind, server, name) == to_gateway_uri(their, other, others))


@given(servers, st.text(), st.text())
def test_a_client_may_expand_a_template_here(server: str, template: str, value: str) -> None:
    """The expressions stay what they are: expanding and placing may change places."""
    template = f"{template}{{id}}"

    def expanded(text: str) -> str:
        return text.replace("{id}", value)

    assert (server, expanded(template)) == from_gateway_uri(
        "resource", expanded(to_gateway_uri("resource", server, template))
    )


@pytest.mark.parametrize(
    "address", ["test://static", "", "gateway:/", "gateway:/server", "gateway"]
)
def test_what_is_no_address(address: str) -> None:
    """Other URIs are not taken for ours."""
    assert from_gateway_uri("resource", address) is None


def test_a_gateway_behind_a_gateway() -> None:
    """An address of an address leads back step by step."""
    inner = to_gateway_uri("resource", "files", "file:///a.txt")

    assert ("inner", inner) == from_gateway_uri(
        "resource", to_gateway_uri("resource", "inner", inner)
    )
    assert ("files", "file:///a.txt") == from_gateway_uri("resource", inner)


@pytest.mark.parametrize(
    ("template", "uri", "expected"),
    [
        ("test://{id}/data", "test://123/data", True),
        ("test://{id}/data", "test://123/other", False),
        ("test://{id}/data", "other://123/data", False),
        ("test://{a}{b}", "test://", True),
        ("test://{a}/x/{b}/x", "test://1/x/2/x", True),
        ("test://{a}/x/{b}/x", "test://1/x", False),
        ("test://{a}-{b}-{c}", "test://1-2", False),
        ("test://plain", "test://plain", True),
        ("test://plain", "test://plainer", False),
        ("ab{x}b", "ab", False),
    ],
)
def test_which_uri_may_come_from_a_template(template: str, uri: str, expected: bool) -> None:
    """By the fixed parts, in their order."""
    assert expected == matches_template(template, uri)


def test_a_malicious_template_is_cheap() -> None:
    """No expression of a stranger is ever compiled (CVE-2026-0621)."""
    assert not matches_template("{a}" * 5_000 + "b", "a" * 100_000)
