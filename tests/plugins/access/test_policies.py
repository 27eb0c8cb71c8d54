"""Which policy decides, for whom and about what."""

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
    made = Entity(id=name, exposed_name=name, server=server, definition=definition)
    return replace(made, **changes)


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
def test_a_rule_matches_where_everything_matches_that_it_names(
    conditions: Mapping[str, Any], thing: Entity, is_denied: bool
) -> None:
    """A server's own word that it only reads counts for nothing unless the host vouches for it."""
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
def test_a_rule_concerns_callers_by_user_tenant_and_scope(
    conditions: Mapping[str, Any], caller: Caller, is_denied: bool
) -> None:
    """Filters stand for their caller."""
    policies, thing = Policies((deny(**conditions),)), entity("a/x")

    assert is_denied is (policies.decide(thing, caller).action == "deny")
    assert is_denied is (policies.decide(thing, caller.filters()).action == "deny")


def test_the_first_rule_that_decides_decides() -> None:
    """An exception stands above its rule; what hides and limits ends nothing."""
    policies = Policies(
        (
            AccessPolicy(action="limit", calls=1, name="slow"),
            AccessPolicy(action="allow", users=("ada",)),
            deny(name="nobody else"),
            AccessPolicy(action="ask"),
        )
    )
    thing, other = entity("a/x"), Caller(user="bob")

    assert ("allow", "policy 2") == decided(policies, thing, ADA)
    assert ("deny", "nobody else") == decided(policies, thing, other)
    assert ("allow", "") == decided(Policies(), thing, other)
    assert ["slow"] == [name for name, _ in policies.besides("limit", thing, other)]


def decided(policies: Policies, thing: Entity, caller: Caller) -> tuple[str, str]:
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
def test_what_is_seen_of_a_catalog_is_what_is_decided_of_each_entity(
    rules: list[AccessPolicy], names: list[str], user: str
) -> None:
    """The mask of a search and the check of a call are one rule."""
    policies, caller = Policies(tuple(rules)), Caller(user=user)
    things = [entity(name) for name in names]

    seen = policies.open(policies.classify(things), policies.audience(caller))

    if policies.hiding:
        assert [policies.decide(each, caller).action != "deny" for each in things] == seen.tolist()
    shared = policies.shared(caller.filters())
    assert policies.audience(shared) == policies.audience(caller)


def test_of_3000_tools_each_is_matched_once() -> None:
    """Whoever asks, however often; a tool that is new costs itself."""
    counts: list[str] = []

    class Counted(str):
        __slots__ = ()

        def partition(self, sep: str, /) -> tuple[str, str, str]:
            counts.append(self)
            return super().partition(sep)

    policies = Policies((deny(tools=("*/delete_*",), users=("b*",)),))
    things = [entity(f"a/{at}", originals=(Counted(f"b/{at}"),)) for at in range(3_000)]
    for name in ("ada", "bob", "ben"):
        policies.open(policies.classify(things), policies.audience(Caller(user=name)))
    assert 3_000 == len(counts)

    policies.classify([*things, entity("a/new", originals=(Counted("b/new"),))])
    assert 3_001 == len(counts)


async def test_users_share_results_unless_a_rule_tells_them_apart(
    open_gateway: OpenGateway,
) -> None:
    """Then nobody gets those of another."""
    gateway = open_gateway([tool("read_letter"), tool("burn_letter")])
    ada, bob = Caller(user="ada"), Caller(user="bob")

    shared = [await gateway.search("letter", caller=each) for each in (ada, bob)]
    gateway.set_policies([deny(tools=("*/burn_*",), users=("bob",))])
    own = [await gateway.search("letter", caller=each) for each in (ada, bob)]

    assert [False, True] == [each.cached for each in shared]
    assert [False, False] == [each.cached for each in own]
    assert [2, 1] == [len(each.matches) for each in own]


async def test_policies_change_while_the_gateway_runs(open_gateway: OpenGateway) -> None:
    """No server is listed anew; the host sees everything."""
    source = ListSource("desk", [tool("read_letter"), tool("burn_letter")])
    gateway = open_gateway()
    gateway.add_source(source)
    gateway.add_virtual_server("v", {"warm": "desk/burn_letter"})
    await gateway.report()
    before = source.listings
    gateway.set_policies([deny(tools=("desk/burn_*",))])

    shown = [each.id for each in await gateway.list_tools()]
    everything = await gateway.list_tools(Filters(unrestricted=True))

    assert ["desk/read_letter"] == shown
    assert 3 == len(everything)
    assert before == source.listings


async def test_no_caller_is_taken_for_one_of_before_the_policies_changed(
    open_gateway: OpenGateway,
) -> None:
    """The first rule of then is not the first rule of now."""
    gateway, ada, bob = open_gateway(), Caller(user="ada"), Caller(user="bob")
    rules = [AccessPolicy(action="deny", tools=("x",), users=(name,)) for name in ("ada", "bob")]
    gateway.set_policies(rules)
    before = gateway.audience(ada)
    gateway.set_policies(rules[::-1])

    assert before not in {gateway.audience(ada), gateway.audience(bob)}


async def test_an_explanation_says_that_a_policy_left_something_out(
    open_gateway: OpenGateway,
) -> None:
    """To a reader that may see it."""
    rule = deny(tools=("*/burn_*",), users=("bob",))
    tools = [tool("burn_letter", "Burn a letter."), tool("count_stamps", "Count the stamps.")]
    gateway = open_gateway(tools, options=Options(policies=(rule,)))
    bob = Caller(user="bob")

    told = await gateway.search("burn a letter", caller=bob, explain=Caller(user="ada"))
    own = await gateway.search("burn a letter", caller=bob, explain=True)

    assert [("policy",)] == [each.filters for each in told.filtered]
    assert () == own.filtered


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
def test_a_rule_that_cannot_mean_anything_is_refused(values: dict[str, Any], message: str) -> None:
    """Also what is only misspelt."""
    with pytest.raises(ConfigError, match=message):
        AccessPolicy(**values)
