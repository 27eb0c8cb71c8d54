"""The signal for the tool nearest to each clause of a request."""

from __future__ import annotations

from gateway import Gateway
from gateway.search.signals.every import ClauseCoverage
from gateway.testing import HashingEmbedder
from tests.core.search.signals.conftest import names_of, pool_of
from tests.fakes import ListSource, tool


def test_tool_nearest_to_several_clauses_gains_once() -> None:
    request = (
        "Please read the letter of my aunt to me now. Then read the letter of my uncle to me. "
        "Then count all coins of it."
    )
    pool = pool_of(("read_letter", "paint_fence", "count_coins"), request)

    gains = ClauseCoverage().score(pool)

    assert 3 == pool.query.clause_count
    assert {"read_letter", "count_coins"} == names_of(pool, gains == 1)
    assert 2 == gains.sum()
    assert not ClauseCoverage().score(pool_of(("read_letter",), "read it")).any()


async def test_long_request_over_unrelated_servers_finds_a_tool_for_each_clause() -> None:
    """Most words of the request are about maps, and the maps server has more tools than the
    limit.
    """
    verbs = ("draw", "print", "zoom", "save", "share", "rotate", "measure", "colour")
    catalogs = {
        "maps": [tool(f"{verb}_map", f"{verb} a map of roads in a city") for verb in verbs],
        "mail": [tool("post_letter", "send a paper by stamp"), tool("list_stamps", "list stamps")],
        "bank": [tool("pay_invoice", "settle a bill"), tool("list_accounts", "list accounts")],
        "other": [tool(f"thing_{number}", f"keep the thing {number}") for number in range(20)],
    }
    request = (
        "Please draw a map of all the streets and roads of the city and measure the roads on the "
        "map of the city. Send a paper to my aunt. Settle the bill from yesterday."
    )
    async with Gateway(embedder=HashingEmbedder(), strategy="auto") as gateway:
        for name, tools in catalogs.items():
            gateway.add_source(ListSource(name, tools))
        result = await gateway.search(request, limit=5)

    assert {"draw_map", "post_letter", "pay_invoice"} <= {match.name for match in result.matches}
