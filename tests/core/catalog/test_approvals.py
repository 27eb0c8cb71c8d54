"""What becomes of tools that are not as they were approved, or look like an attack."""

from __future__ import annotations

import pytest

from gateway.catalog import apply_policies, is_hidden
from gateway.options import Policy, UpstreamOptions
from gateway.types import Listing, ToolDefinition, pin_key
from tests.fakes import tool


def names(listing: Listing) -> list[str]:
    return [tool.name for tool in listing.tools]


def flagged(listing: Listing) -> list[tuple[str, bool]]:
    return [(note.code, "left out" in note.detail) for note in listing.diagnostics]


@pytest.mark.parametrize(("policy", "remaining"), [("warn", ["a", "b"]), ("block", ["b"])])
def test_a_suspicious_tool_is_told_or_left_out(policy: Policy, remaining: list[str]) -> None:
    """The host decides whether a rule's word is enough."""
    listing = Listing(definitions=(tool("a"), tool("b")), suspicions={"a": ("hidden characters",)})
    options = UpstreamOptions(on_suspicion=policy)

    found = apply_policies(listing, {}, server="srv", options=options)

    assert (remaining, [("tool_suspicious", policy == "block")]) == (names(found), flagged(found))
    assert "hidden characters" in found.diagnostics[0].detail
    expected = {"a": found.diagnostics, "b": ()}
    assert [expected[each.name] for each in found.tools] == [
        each.diagnostics for each in found.tools
    ]


def test_each_definition_has_its_own_diagnostics() -> None:
    """Whoever meets one knows."""
    things = (ToolDefinition(kind="prompt", name="a"), ToolDefinition(kind="prompt", name="b"))
    listing = Listing(definitions=(tool("a"), *things), suspicions={"a": ("odd",)})

    found = apply_policies(
        listing, {"a": "", "prompt:b": ""}, server="srv", options=UpstreamOptions()
    )

    codes = [[note.code for note in each.diagnostics] for each in found.definitions]
    assert [["tool_changed", "tool_suspicious"], [], ["tool_changed"]] == codes


@pytest.mark.parametrize(("policy", "remaining"), [("warn", ["a", "b"]), ("block", ["b"])])
def test_a_suspicious_prompt_is_told_or_left_out(policy: Policy, remaining: list[str]) -> None:
    """Whatever a tool of the same name is."""
    things = tuple(ToolDefinition(kind="prompt", name=name) for name in ("a", "b"))
    listing = Listing(
        definitions=(tool("a"), *things), suspicions={"prompt:a": ("hidden characters",)}
    )
    found = apply_policies(listing, {}, server="srv", options=UpstreamOptions(on_suspicion=policy))

    assert ["a", *remaining] == [item.name for item in found.definitions]
    assert [("tool_suspicious", policy == "block")] == flagged(found)
    assert "prompt 'a'" in found.diagnostics[0].detail


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
def test_what_a_policy_hides_is_hidden_in_every_spelling(name: str, hidden: bool) -> None:
    """Its server may read them as one."""
    uris = ("note://secret", "note://of/{name}", "skill://a/b/SKILL.md")
    shut = tuple(ToolDefinition(kind="resource", name=uri) for uri in uris)
    shown = ToolDefinition(kind="resource", name="note://open")

    assert hidden == is_hidden(
        "resource",
        name,
        listed=Listing(definitions=(*shut, shown)),
        shown=Listing(definitions=(shown,)),
    )


@pytest.mark.parametrize("policy", ["warn", "block"])
def test_what_a_server_says_of_itself_is_withheld_if_it_looks_like_an_attack(
    policy: Policy,
) -> None:
    """It would be the description that a model reads of the server."""
    listing = Listing(
        definitions=(tool("a"),),
        instructions="Obey.",
        suspicions={pin_key("server", "srv"): ("reads like an order to a model",)},
    )
    options = UpstreamOptions(on_suspicion=policy)
    found = apply_policies(listing, {}, server="srv", options=options)

    assert ("", ["a"]) == (found.instructions, names(found))
    assert [("tool_suspicious", True)] == flagged(found)
