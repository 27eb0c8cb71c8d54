"""Ranking cases written in Markdown."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gateway.testing import HashingEmbedder
from gateway.types import Match, SearchResult
from tests.conftest import OpenGateway
from tests.core.search.cases import Case, cases, items
from tests.fakes import TableNormalizer, codes


def _listed(found: tuple[Match, ...]) -> list[str]:
    return [match.name for match in found]


SAID: dict[str, Callable[[SearchResult], list[str]]] = {
    "mode": lambda result: [result.mode],
    "matches": lambda result: _listed(result.matches),
    "first": lambda result: _listed(result.matches[:1]),
    "related": lambda result: _listed(result.related),
    "next": lambda result: _listed(result.next_steps),
    "prerequisites": lambda result: _listed(result.prerequisites),
    "proxies": lambda result: [
        match.name
        for found in (result.matches, result.prerequisites, result.related, result.next_steps)
        for match in found
        if match.direct
    ],
    "diagnostics": codes,
}


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.title)
async def test_search_result_matches_the_case(open_gateway: OpenGateway, case: Case) -> None:
    """Only the lines in the case are compared."""
    search = case.search
    meanings = dict(item.split("=") for item in items(search.get("meanings", "")))
    gateway = open_gateway(
        case.tools,
        strategy=search["strategy"],
        embedder=HashingEmbedder(meanings=meanings),
        normalizer=(
            TableNormalizer({search["query"]: search["english"]}) if "english" in search else None
        ),
        graph=list(case.documents),
    )

    result = await gateway.search(search["query"], limit=int(search["limit"]))

    expected = {key: items(value) for key, value in case.expected.items()}
    assert expected == {key: SAID[key](result) for key in expected}
