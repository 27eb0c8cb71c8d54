"""A search over four parts gives what one process with the whole catalog gives."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.types import Caller, Filters, SearchResult
from tests.fakes import NOUNS, SCOPES, VERBS, ListSource, codes, tool
from tests.sharding.conftest import ShardedCatalog

GUEST = Caller(user="guest")
"""Policies hide some tools of each part from it."""
_WORDS = [*VERBS, *NOUNS, *filter(None, SCOPES), "invioce", "custmer", "zzyzx", "the", "of all"]
_TEXT = st.lists(st.sampled_from(_WORDS), min_size=1, max_size=6).map(" ".join)
_LONG = st.lists(_TEXT, min_size=4, max_size=9).map(". Then ".join)
_NAMES = st.tuples(st.sampled_from(VERBS), st.sampled_from(NOUNS)).map("_".join)
_QUERY = _TEXT | _LONG | _NAMES | st.sampled_from(["server1", "#billing list", "server2 #people"])
_FILTERS = st.builds(
    Filters,
    servers=st.frozensets(st.sampled_from([f"server{number}" for number in range(12)]), max_size=5),
    tags=st.frozensets(st.sampled_from(["billing", "people"]), max_size=1),
    kinds=st.sampled_from([frozenset({"tool"}), frozenset({"tool", "server"})]),
    include_disabled=st.booleans(),
)
_OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "limit": st.sampled_from([1, 5, 20]),
        "filters": _FILTERS,
        "caller": st.sampled_from([Caller(scopes=frozenset({"admin"})), GUEST]),
        "context_summary": _TEXT,
        "diversify": st.booleans(),
    },
)


def comparable(result: SearchResult) -> SearchResult:
    """Leave out what counts work: a path that leads to another part is walked by nobody."""
    return replace(result, counts=replace(result.counts, graph_nodes=0, embedded_texts=0, tokens=0))


@settings(max_examples=12)
@given(query=_QUERY, options=_OPTIONS)
def test_four_parts_answer_as_one_process_does(
    catalog: ShardedCatalog, query: str, options: dict[str, Any]
) -> None:
    """To the last bit: matches, scores, confidence, evidence, supplements and diagnostics."""
    whole, sharded = catalog.both(query, **options)

    assert comparable(whole) == comparable(sharded)


def test_equally_strong_neighbours_keep_their_order(catalog: ShardedCatalog) -> None:
    """By their names in the graph, not by those that the gateway shows."""
    whole, sharded = catalog.both("meeting playlist campaign")

    assert whole.related
    assert comparable(whole) == comparable(sharded)


def test_several_queries_take_turns(catalog: ShardedCatalog) -> None:
    """As in one process, whichever part has what each of them wants."""
    queries = ["list invoices", "create one customer", "archive the urgent ticket"]

    whole, sharded = catalog.both(queries=queries, limit=9)

    assert comparable(whole) == comparable(sharded)


def test_each_part_hides_what_policies_deny_to_the_caller(catalog: ShardedCatalog) -> None:
    """Also where a tool is called by its name, and among what is said of the catalog."""
    open_to_all, _ = catalog.both("create one invoice", limit=20)
    whole, sharded = catalog.both("create one invoice", limit=20, caller=GUEST)

    denied = {match.id for match in open_to_all.matches if "/create_" in match.id}
    shown = {match.id for match in sharded.shown}
    assert denied
    assert not denied & shown
    assert not any("_invoice" in each or "/create_" in each for each in shown)
    assert comparable(whole) == comparable(sharded)


def test_without_a_query_the_catalog_is_browsed_by_name(catalog: ShardedCatalog) -> None:
    whole, sharded = catalog.both(limit=7)

    assert "browse" == sharded.mode
    assert comparable(whole) == comparable(sharded)


def test_what_is_displayed_is_chosen_from_all_parts(catalog: ShardedCatalog) -> None:
    options = {
        "limit": 20,
        "display_limit": 6,
        "filters": Filters(kinds=frozenset({"tool", "server"})),
    }

    whole, sharded = catalog.both("update the regional project", **options)

    assert comparable(whole) == comparable(sharded)


def test_a_tool_that_comes_is_found_at_the_next_search(catalog: ShardedCatalog) -> None:
    """The part says that it changed; all are counted anew."""
    source = ListSource("late", [tool("brew_espresso", "Brew an espresso in the kitchen.")])
    for gateway in (catalog.whole, catalog.parts[0]):
        gateway.add_source(source)

    whole, sharded = catalog.both("brew an espresso")

    assert "late/brew_espresso" == sharded.matches[0].id
    assert comparable(whole) == comparable(sharded)
    assert [] == [code for code in codes(sharded) if code == "part_unavailable"]
