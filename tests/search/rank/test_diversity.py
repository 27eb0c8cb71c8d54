"""Soft caps on kinds, and the tools of matched servers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.search.rank.display import ToolWords, best_tools_per_server, cap_per_kind, words_of
from gateway.testing import HashingEmbedder
from gateway.types import Filters
from graphs.lexical.analysis import tokens
from tests.conftest import OpenGateway
from tests.fakes import tool

kinds = st.lists(st.sampled_from(["server", "agent", "tool"]), max_size=40)


def select(listed: str, *, limit: int, floor: float = 0.0) -> Counter[str]:
    """Count the kinds of a ranking, told by letters."""
    scores = [1 - place / 100 for place in range(len(listed))]
    return Counter(
        listed[place] for place in cap_per_kind(listed, scores, limit=limit, floor=floor)
    )


@pytest.mark.parametrize(
    ("listed", "limit", "kept"),
    [
        ("", 10, {}),
        ("sss", 0, {}),
        ("s" * 12, 10, {"s": 10}),  # no competition: the cap is lifted
        ("s" * 8 + "aa" + "tt", 10, {"s": 6, "a": 2, "t": 2}),
        ("s" * 40 + "aaa" + "tt", 50, {"s": 40, "a": 3, "t": 2}),
        ("sa", 1, {"s": 1}),
        ("s" * 9 + "a", 10, {"s": 9, "a": 1}),
        ("s" * 9 + "a", 8, {"s": 7, "a": 1}),
    ],
)
def test_a_kind_stands_back_while_others_wait(
    listed: str, limit: int, kept: dict[str, int]
) -> None:
    """ceil(0.6 x limit) each, then what is free goes back."""
    assert kept == select(listed, limit=limit)


def test_nobody_takes_a_place_who_is_far_worse() -> None:
    """Nine servers from 0.90 down and one agent at 0.10: eight servers are shown."""
    scores = [0.9 - place / 100 for place in range(9)] + [0.1]

    assert list(range(8)) == cap_per_kind(["server"] * 9 + ["agent"], scores, limit=8)
    assert 9 in cap_per_kind(["server"] * 9 + ["agent"], scores, limit=8, floor=0)
    assert 9 in cap_per_kind(["server"] * 9 + ["agent"], [*scores[:9], 0.5], limit=8)


@given(kinds, st.integers(0, 30), st.floats(0, 1))
def test_a_page_is_full_in_order_and_without_repeats(
    listed: list[str], limit: int, floor: float
) -> None:
    """As many as are wanted, if there are so many; the best comes first."""
    scores = [1 / (1 + place) for place in range(len(listed))]

    places = cap_per_kind(listed, scores, limit=limit, floor=floor)

    assert min(limit, len(listed)) == len(places)
    assert sorted(set(places)) == places
    assert not places or 0 == places[0]


def worded(name: str, text: str = "", server: str = "mail") -> ToolWords:
    return ToolWords(
        server=server,
        name=name,
        name_words=words_of(tokens(name)),
        description_words=words_of(tokens(text)),
    )


def extract(query: str, tools: Sequence[ToolWords], **bounds: int) -> list[tuple[str, float]]:
    found = best_tools_per_server(
        tools, words_of(tokens(query)), limit=bounds.pop("limit", 10), **bounds
    )
    return [(tools[place].name, score) for place, score in found]


def test_a_tool_earns_by_name_and_by_description() -> None:
    """By hand: 0.7 x min(1, what the words earn) + 0.3 x the share of words that earned."""
    tools = [
        worded("send_mail"),
        worded("send", "Deliver a mail."),
        worded("deliver", "Send it."),
        worded("read"),
    ]

    by_hand = {"send_mail": 0.7 + 0.3, "send": 0.7 * 0.8 + 0.3, "deliver": 0.7 * 0.3 + 0.3 * 0.5}
    found = dict(extract("send mail", tools))
    assert list(by_hand) == list(found)
    assert by_hand == pytest.approx(found)


def test_words_are_whole() -> None:
    """`the` is not in `theme`."""
    assert [] == extract("men", [worded("menu", "A mention.")])
    assert [] == extract("", [worded("menu")])


@pytest.mark.parametrize(("limit", "count"), [(1, 3), (3, 3), (10, 6), (50, 9)])
def test_so_many_tools_are_given(limit: int, count: int) -> None:
    """max(3, ceil(0.6 x limit)), here of nine."""
    tools = [worded(f"send_{letter * 3}") for letter in "abcdefghi"]

    assert count == len(extract("send", tools, limit=limit))


def test_one_server_does_not_take_all_places() -> None:
    """The best of each come first, up to the cap; ties by server and name."""
    tools = [worded("send_x"), worded("send_y"), worded("send_z", server="post")]

    assert ["send_x", "send_z"] == [name for name, _ in extract("send", tools, per_server=1)]


async def test_a_search_can_be_spread(open_gateway: OpenGateway) -> None:
    """Off by default; one kind alone is not cap_per_kind, and is remembered apart."""
    catalog = [tool(f"send_{letter}", "Send it.") for letter in "abcdefgh"]
    gateway = open_gateway(catalog, strategy="auto", embedder=HashingEmbedder())
    filters = Filters(kinds=frozenset({"tool", "agent"}))

    plain = await gateway.search("send", limit=5, filters=filters)
    spread = await gateway.search("send", limit=5, filters=filters, diversify=True)

    assert plain.matches == spread.matches
    assert not spread.cached
