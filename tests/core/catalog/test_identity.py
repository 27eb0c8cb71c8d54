"""Ids, URIs and exposed names."""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Iterable
from dataclasses import replace
from itertools import permutations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.catalog import (
    definition_digest,
    entity_id,
    expose_names,
    from_gateway_uri,
    similar_names,
    to_gateway_uri,
)
from gateway.runtime.naming import matches_template
from gateway.types import Hints, Kind, ToolDefinition
from tests.fakes import tool

SERVERS = ("a", "b", "a_b", "A", "git.hub", "local")
CLASHING = ("run", "Run", "b_run", "a_b_run", "search_tools", "find it", "find_it", "")
servers = st.sampled_from(SERVERS)
names_of_servers = st.one_of(
    st.sampled_from(CLASHING),
    st.text(st.characters(), max_size=80),
    st.text("x", min_size=60, max_size=90),
)
catalogs = st.lists(st.tuples(servers, names_of_servers), max_size=25, unique=True)


def expose_tools(
    tools: Iterable[tuple[str, str]], *, reserved: frozenset[str] = frozenset()
) -> dict[str, str]:
    own_names = {entity_id("tool", server, name): name for server, name in tools}
    return expose_names(own_names, reserved=reserved)


@given(catalogs)
def test_every_tool_has_a_unique_callable_name(tools: list[tuple[str, str]]) -> None:
    """Exposed names satisfy OpenAI's rule for functions, and are unique even without case."""
    check_names(tools)


def check_names(tools: list[tuple[str, str]]) -> None:
    """Check that each tool has one unique exposed name, with allowed characters and length."""
    names = expose_tools(tools, reserved=frozenset({"search_tools", "call_tool"}))

    assert {entity_id("tool", *server_and_name) for server_and_name in tools} == names.keys()
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name) for name in names.values())
    assert len(names) == len({name.casefold() for name in names.values()})
    assert {"search_tools", "call_tool"}.isdisjoint(name.casefold() for name in names.values())


def test_exposed_names_are_unique_in_ten_thousand_random_catalogs() -> None:
    """Half of the tools have names that collide, the others have arbitrary characters."""
    for seed in range(10_000):
        dice = random.Random(seed)
        some = [
            "".join(map(chr, dice.choices(range(sys.maxunicode + 1), k=index)))
            for index in range(9)
        ]
        tools = {
            (dice.choice(SERVERS), dice.choice(dice.choice((CLASHING, [*some, "x" * 80]))))
            for _ in range(dice.randrange(25))
        }
        check_names(sorted(tools))


def test_exposed_names_are_equal_in_all_720_orders_of_six_servers() -> None:
    """The six servers have tools with the same names."""
    name_sets = {
        tuple(sorted(expose_tools(product(order, CLASHING)).items()))
        for order in permutations(SERVERS)
    }

    assert 1 == len(name_sets)


@given(catalogs.flatmap(lambda tools: st.tuples(st.just(tools), st.permutations(tools))))
def test_exposed_names_do_not_depend_on_the_order_of_registration(
    both: tuple[list[tuple[str, str]], list[tuple[str, str]]],
) -> None:
    given_order, shuffled = both

    assert expose_tools(given_order) == expose_tools(shuffled)


@pytest.mark.parametrize(
    ("tools", "expected"),
    [
        ([("git", "status")], ["status"]),
        ([("git", "status"), ("svn", "status")], ["status", "svn_status"]),
        ([("git", "Status"), ("svn", "status")], ["Status", "svn_status"]),
        ([("git", "find it!")], ["find_it"]),
        ([("git", "search_tools")], ["git_search_tools"]),
    ],
)
def test_exposed_name_is_the_tools_own_name_or_has_the_server_as_prefix(
    tools: list[tuple[str, str]], expected: list[str]
) -> None:
    assert expected == list(expose_tools(tools, reserved=frozenset({"search_tools"})).values())


def test_exposed_name_gets_a_hash_if_the_name_with_server_prefix_is_taken() -> None:
    """`x_b` + `run` and `x` + `b_run` need the same name; the smaller id gets it."""
    names = expose_tools([("x_b", "run"), ("x", "b_run"), ("c", "run"), ("d", "b_run")])

    assert ["run", "b_run", "x_b_run"] == [names[key] for key in ("c/run", "d/b_run", "x/b_run")]
    assert re.fullmatch(r"x_b_run_[0-9a-f]{8}", names["x_b/run"])


def test_tool_named_like_the_hashed_name_of_another_does_not_replace_it() -> None:
    tools = [("x_b", "run"), ("x", "b_run"), ("c", "run"), ("d", "b_run")]
    taken = expose_tools(tools)["x_b/run"]

    names = expose_tools([*tools, ("a", taken)])

    assert 5 == len(set(names.values()))
    assert taken == names[f"a/{taken}"]


@given(catalogs, st.data())
def test_tool_keeps_its_exposed_name_when_tools_are_added(
    tools: list[tuple[str, str]], data: st.DataObject
) -> None:
    old = data.draw(st.lists(st.sampled_from(tools), unique=True)) if tools else []
    before = expose_tools(old)
    holders = {name.casefold(): key for key, name in before.items()}
    own_names = {entity_id("tool", server, name): name for server, name in tools}

    after = expose_names(own_names, holders=holders)

    assert before == {key: after[key] for key in before}


def test_similar_names_finds_look_alike_tools_of_different_servers() -> None:
    """Names are similar if they differ only in a plural, case, other separators or lookalike
    letters. Tools of one server are not compared.
    """
    names = (
        "a/get_user_role", "b/get_user_roles", "c/getUserRole", "d/get-user-role",
        "e/g\u0435t_user_role", "f/get_user", "g/list", "h/l1st", "i/open", "i/Open", "j/save",
        "k/save",
    )  # fmt: skip

    groups = similar_names({key: key.partition("/")[2] for key in names})

    assert (names[:5], ("g/list", "h/l1st")) == groups


def test_tools_with_lone_surrogates_in_their_names_get_exposed_names() -> None:
    """Names with different lone surrogates get different exposed names."""
    names = expose_tools([("a", "\ud800"), ("a", "\ud801"), ("a", "?")])

    assert 3 == len(set(names.values()))


def test_definition_digest_changes_with_every_field_that_a_search_or_call_reads() -> None:
    """Caches use the digest as key and must not return old data."""
    first = tool("a", "Does a.")
    others = [
        replace(first, description="Does b."),
        replace(first, title="A"),
        replace(first, input_schema={"type": "object", "required": ["x"]}),
        replace(first, output_schema={}),
        replace(first, hints=Hints(aliases=("b",))),
        replace(first, hints=Hints(enabled=False)),
    ]

    digests = {definition_digest("srv", definition) for definition in (first, *others)}

    assert 7 == len(digests)
    assert definition_digest("srv", first) != definition_digest("other", first)


def test_definition_digest_excludes_the_search_text() -> None:
    """Approvals apply to the text that a model sees."""
    first = tool("a", "Does a.")
    searched = replace(first, hints=Hints(search_text="Does what is wanted."))

    assert definition_digest("srv", first) == definition_digest("srv", searched)


def test_definition_digest_ignores_the_order_of_json_keys() -> None:
    definition = ToolDefinition(name="a", input_schema={"type": "object", "title": "t"})
    two = ToolDefinition(name="a", input_schema={"title": "t", "type": "object"})

    assert definition_digest("srv", definition) == definition_digest("srv", two)


all_servers = st.from_regex(r"[A-Za-z0-9_.-]{1,64}", fullmatch=True)
kinds: st.SearchStrategy[Kind] = st.sampled_from(["resource", "prompt"])


@given(kinds, all_servers, st.text())
def test_gateway_uri_is_split_into_server_and_original_uri_again(
    kind: Kind, server: str, name: str
) -> None:
    """No table of names is needed, and any text is allowed."""
    assert (server, name) == from_gateway_uri(kind, to_gateway_uri(kind, server, name))


@given(all_servers, st.text(), all_servers, st.text(), kinds, kinds)
def test_different_entities_have_different_uris_and_ids(
    server: str, name: str, other: str, others: str, kind: Kind, their: Kind
) -> None:
    same = (kind, server, name) == (their, other, others)

    assert same == (entity_id(kind, server, name) == entity_id(their, other, others))
    if kind == their:
        assert same == (to_gateway_uri(kind, server, name) == to_gateway_uri(their, other, others))


@pytest.mark.parametrize(
    "address", ["test://static", "", "gateway:/", "gateway:/server", "gateway"]
)
def test_other_uris_are_not_gateway_uris(address: str) -> None:
    assert from_gateway_uri("resource", address) is None


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
def test_uri_matches_a_template_by_its_fixed_parts(template: str, uri: str, expected: bool) -> None:
    assert expected == matches_template(template, uri)


def test_uri_is_matched_quickly_with_a_malicious_template() -> None:
    """A regular expression from a server is never compiled (CVE-2026-0621)."""
    assert not matches_template("{a}" * 5_000 + "b", "a" * 100_000)
