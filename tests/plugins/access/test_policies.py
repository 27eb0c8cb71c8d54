"""Decisions of access policies by entity and caller."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import ConfigError
from gateway.options import AccessPolicy, Options
from gateway.plugins.access import Policies
from gateway.types import Caller, Entity, Filters, Hints, ToolDefinition
from tests.conftest import OpenGateway
from tests.fakes import ListSource, tool

DELETE = Hints(destructive=True, open_world=False, tags=("Ops",))
READ = Hints(read_only=True, open_world=True)
ADA = Caller(user="ada", tenant="acme", scopes=frozenset({"admin"}))


def entity(name: str, hints: Hints = READ, **changes: Any) -> Entity:
    server = name.partition("/")[0]
    definition = ToolDefinition(name=name.partition("/")[2], hints=hints)
    new = Entity(id=name, exposed_name=name, server=server, definition=definition)
    return replace(new, **changes)


def deny(**conditions: Any) -> AccessPolicy:
    return AccessPolicy(action="deny", **conditions)


@pytest.mark.parametrize(
    ("conditions", "thing", "is_denied"),
    [
        ({}, entity("a/x"), True),
        ({"tools": ("*/delete_*",)}, entity("a/delete_x"), True),
        ({"tools": ("delete_*",)}, entity("a/delete_x"), False),
        ({"tools": ("b/y",)}, entity("v/alias", originals=("b/y",)), True),
        ({"servers": ("git*",)}, entity("github/x"), True),
        ({"servers": ("b",)}, entity("v/alias", originals=("b/y",)), True),
        ({"servers": ("git",)}, entity("github/x"), False),
        ({"tags": ("ops",)}, entity("a/x", DELETE), True),
        ({"tags": ("ops",)}, entity("a/x"), False),
        ({"kinds": ("prompt",)}, entity("a/x"), False),
        ({"hints": ("destructive",)}, entity("a/x", DELETE), True),
        ({"hints": ("destructive",)}, entity("a/x", Hints()), False),
        ({"hints": ("open_world",)}, entity("a/x"), True),
        ({"hints": ("not_read_only",)}, entity("a/x"), True),
        ({"hints": ("not_read_only",)}, entity("a/x", vouched=True), False),
        ({"hints": ("read_only",)}, entity("a/x", trusted=True), True),
        ({"tools": ("a/*",), "servers": ("b",)}, entity("a/x"), False),
    ],
)
def test_policy_matches_an_entity_if_all_its_conditions_match(
    conditions: Mapping[str, Any], thing: Entity, is_denied: bool
) -> None:
    """A server's read-only hint counts only if the host trusts the server."""
    assert is_denied is (Policies((deny(**conditions),)).decide(thing, ADA).action == "deny")


@pytest.mark.parametrize(
    ("conditions", "caller", "is_denied"),
    [
        ({"users": ("a*",)}, ADA, True),
        ({"users": ("",)}, ADA, False),
        ({"users": ("",)}, Caller(), True),
        ({"tenants": ("acme", "other")}, ADA, True),
        ({"tenants": ("other",)}, ADA, False),
        ({"scopes": ("ops", "admin")}, ADA, True),
        ({"scopes": ("ops",)}, ADA, False),
        ({"scopes": ("ops",)}, Caller(scopes=frozenset({"*"})), True),
    ],
)
def test_policy_matches_callers_by_user_tenant_and_scope(
    conditions: Mapping[str, Any], caller: Caller, is_denied: bool
) -> None:
    """The filters of a caller's search match in the same way."""
    policies, thing = Policies((deny(**conditions),)), entity("a/x")

    assert is_denied is (policies.decide(thing, caller).action == "deny")
    assert is_denied is (policies.decide(thing, caller.filters()).action == "deny")


def test_first_matching_policy_decides() -> None:
    """Policies that redact or limit do not decide."""
    policies = Policies(
        (
            AccessPolicy(action="limit", calls=1, name="slow"),
            AccessPolicy(action="allow", users=("ada",)),
            deny(name="nobody else"),
            AccessPolicy(action="ask"),
        )
    )
    thing, other = entity("a/x"), Caller(user="bob")

    assert ("allow", "policy 2") == decision_of(policies, thing, ADA)
    assert ("deny", "nobody else") == decision_of(policies, thing, other)
    assert ("allow", "") == decision_of(Policies(), thing, other)
    assert ["slow"] == [name for name, _ in policies.matching_rules("limit", thing, other)]


def decision_of(policies: Policies, thing: Entity, caller: Caller) -> tuple[str, str]:
    decision = policies.decide(thing, caller)
    return decision.action, decision.rule


_names = st.sampled_from(["a/x", "a/y", "b/x", "b/delete"])
_rules = st.builds(
    AccessPolicy,
    action=st.sampled_from(["allow", "deny", "ask"]),
    tools=st.sampled_from([(), ("a/*",), ("*/x", "b/*")]),
    users=st.sampled_from([(), ("ada",), ("b*", "")]),
)


@given(rules=st.lists(_rules, max_size=5), names=st.lists(_names, unique=True), user=st.text("abd"))
def test_search_mask_agrees_with_the_decision_for_each_entity(
    rules: list[AccessPolicy], names: list[str], user: str
) -> None:
    policies, caller = Policies(tuple(rules)), Caller(user=user)
    things = [entity(name) for name in names]

    mask = policies.open(policies.classify(things), policies.audience(caller))

    if policies.hiding:
        assert [
            policies.decide(thing, caller).action != "deny" for thing in things
        ] == mask.tolist()
    shared = policies.shared(caller.filters())
    assert policies.audience(shared) == policies.audience(caller)


def test_classify_matches_policies_once_for_each_of_3000_tools() -> None:
    """Searches of other callers do not match again, and after a change only the new tool is
    matched.
    """
    counts: list[str] = []

    class Counted(str):
        __slots__ = ()

        def partition(self, sep: str, /) -> tuple[str, str, str]:
            counts.append(self)
            return super().partition(sep)

    policies = Policies((deny(tools=("*/delete_*",), users=("b*",)),))
    things = [entity(f"a/{number}", originals=(Counted(f"b/{number}"),)) for number in range(3_000)]
    for name in ("ada", "bob", "ben"):
        policies.open(policies.classify(things), policies.audience(Caller(user=name)))
    assert 3_000 == len(counts)

    policies.classify([*things, entity("a/new", originals=(Counted("b/new"),))])
    assert 3_001 == len(counts)


async def test_users_share_cached_results_unless_a_policy_distinguishes_them(
    open_gateway: OpenGateway,
) -> None:
    gateway = open_gateway([tool("read_letter"), tool("burn_letter")])
    ada, bob = Caller(user="ada"), Caller(user="bob")

    shared = [await gateway.search("letter", caller=caller) for caller in (ada, bob)]
    gateway.set_policies([deny(tools=("*/burn_*",), users=("bob",))])
    separate = [await gateway.search("letter", caller=caller) for caller in (ada, bob)]

    assert [False, True] == [result.cached for result in shared]
    assert [False, False] == [result.cached for result in separate]
    assert [2, 1] == [len(result.matches) for result in separate]


async def test_set_policies_takes_effect_while_the_gateway_runs(open_gateway: OpenGateway) -> None:
    """Tools are not listed again, and the host still sees everything."""
    source = ListSource("desk", [tool("read_letter"), tool("burn_letter")])
    gateway = open_gateway()
    gateway.add_source(source)
    gateway.add_virtual_server("v", {"warm": "desk/burn_letter"})
    await gateway.report()
    before = source.listings
    gateway.set_policies([deny(tools=("desk/burn_*",))])

    visible = [entity.id for entity in await gateway.list_tools()]
    everything = await gateway.list_tools(Filters(unrestricted=True))

    assert ["desk/read_letter"] == visible
    assert 3 == len(everything)
    assert before == source.listings


async def test_audience_changes_with_the_policies(open_gateway: OpenGateway) -> None:
    """An audience contains positions of policies. After the change, position 1 is another
    policy.
    """
    gateway, ada, bob = open_gateway(), Caller(user="ada"), Caller(user="bob")
    rules = [AccessPolicy(action="deny", tools=("x",), users=(name,)) for name in ("ada", "bob")]
    gateway.set_policies(rules)
    before = gateway.audience(ada)
    gateway.set_policies(rules[::-1])

    assert before not in {gateway.audience(ada), gateway.audience(bob)}


async def test_explanation_mentions_entities_hidden_by_a_policy(open_gateway: OpenGateway) -> None:
    """A reader of the explanation who may not see the entity does not get this hint."""
    rule = deny(tools=("*/burn_*",), users=("bob",))
    tools = [tool("burn_letter", "Burn a letter."), tool("count_stamps", "Count the stamps.")]
    gateway = open_gateway(tools, options=Options(policies=(rule,)))
    bob = Caller(user="bob")

    privileged = await gateway.search("burn a letter", caller=bob, explain=Caller(user="ada"))
    unprivileged = await gateway.search("burn a letter", caller=bob, explain=True)

    assert [("policy",)] == [entity.filters for entity in privileged.filtered]
    assert () == unprivileged.filtered


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"action": "redact"}, "redact needs paths or secrets"),
        ({"action": "limit"}, "limit needs calls or cost"),
        ({"action": "deny", "secrets": True}, "deny hides nothing"),
        ({"action": "ask", "calls": 3}, "ask counts nothing"),
        ({"action": "forbid"}, "action: expected"),
        ({"action": "deny", "hints": ("harmless",)}, "hints: expected"),
    ],
)
def test_policy_that_can_have_no_effect_is_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        AccessPolicy(**values)
