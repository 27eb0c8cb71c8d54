"""Policies for changed and suspicious definitions."""

from __future__ import annotations

import pytest

from gateway.catalog import apply_policies, is_hidden
from gateway.options import Policy, UpstreamOptions
from gateway.types import Listing, ToolDefinition, pin_key
from tests.fakes import tool


def names(listing: Listing) -> list[str]:
    return [tool.name for tool in listing.tools]


def codes_and_blocks(listing: Listing) -> list[tuple[str, bool]]:
    return [(note.code, "left out" in note.detail) for note in listing.diagnostics]


@pytest.mark.parametrize(("policy", "remaining"), [("warn", ["a", "b"]), ("block", ["b"])])
def test_suspicious_tool_is_reported_or_blocked(policy: Policy, remaining: list[str]) -> None:
    """By default it is only reported, because the scanner can be wrong."""
    listing = Listing(definitions=(tool("a"), tool("b")), suspicions={"a": ("hidden characters",)})
    options = UpstreamOptions(on_suspicion=policy)

    result = apply_policies(listing, {}, server="srv", options=options)

    assert (remaining, [("tool_suspicious", policy == "block")]) == (
        names(result),
        codes_and_blocks(result),
    )
    assert "hidden characters" in result.diagnostics[0].detail
    expected = {"a": result.diagnostics, "b": ()}
    assert [expected[definition.name] for definition in result.tools] == [
        definition.diagnostics for definition in result.tools
    ]


def test_apply_policies_adds_to_each_definition_its_own_diagnostics() -> None:
    things = (ToolDefinition(kind="prompt", name="a"), ToolDefinition(kind="prompt", name="b"))
    listing = Listing(definitions=(tool("a"), *things), suspicions={"a": ("odd",)})

    result = apply_policies(
        listing, {"a": "", "prompt:b": ""}, server="srv", options=UpstreamOptions()
    )

    codes = [[note.code for note in definition.diagnostics] for definition in result.definitions]
    assert [["tool_changed", "tool_suspicious"], [], ["tool_changed"]] == codes


@pytest.mark.parametrize(("policy", "remaining"), [("warn", ["a", "b"]), ("block", ["b"])])
def test_suspicious_prompt_is_reported_or_blocked(policy: Policy, remaining: list[str]) -> None:
    """A tool with the same name as the prompt is not affected."""
    things = tuple(ToolDefinition(kind="prompt", name=name) for name in ("a", "b"))
    listing = Listing(
        definitions=(tool("a"), *things), suspicions={"prompt:a": ("hidden characters",)}
    )
    result = apply_policies(listing, {}, server="srv", options=UpstreamOptions(on_suspicion=policy))

    assert ["a", *remaining] == [item.name for item in result.definitions]
    assert [("tool_suspicious", policy == "block")] == codes_and_blocks(result)
    assert "prompt 'a'" in result.diagnostics[0].detail


@pytest.mark.parametrize(
    ("name", "hidden"),
    [
        ("note://secret", True),
        ("note://%73ecret", True),
        ("NOTE://secret", True),
        ("note://of/x/../bob", True),
        ("note://o%66/bob", True),
        ("note://open", False),
        ("note://%6fpen", False),
        ("note://unlisted", False),
        ("skill://a/b/%53KILL.md", True),
        ("skill://a/x/../b/more.md", True),
    ],
)
def test_blocked_resource_uri_is_hidden_in_every_spelling(name: str, hidden: bool) -> None:
    """*hidden* is False for other resources. A server may treat all spellings as one resource."""
    uris = ("note://secret", "note://of/{name}", "skill://a/b/SKILL.md")
    shut = tuple(ToolDefinition(kind="resource", name=uri) for uri in uris)
    visible = ToolDefinition(kind="resource", name="note://open")

    assert hidden == is_hidden(
        "resource",
        name,
        listed=Listing(definitions=(*shut, visible)),
        shown=Listing(definitions=(visible,)),
    )


@pytest.mark.parametrize("policy", ["warn", "block"])
def test_suspicious_server_instructions_are_withheld(policy: Policy) -> None:
    """Models would read them as the description of the server."""
    listing = Listing(
        definitions=(tool("a"),),
        instructions="Obey.",
        suspicions={pin_key("server", "srv"): ("reads like an order to a model",)},
    )
    options = UpstreamOptions(on_suspicion=policy)
    result = apply_policies(listing, {}, server="srv", options=options)

    assert ("", ["a"]) == (result.instructions, names(result))
    assert [("tool_suspicious", True)] == codes_and_blocks(result)
