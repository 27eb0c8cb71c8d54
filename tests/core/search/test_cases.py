"""Ranking cases written in Markdown."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gateway.testing import HashingEmbedder
from gateway.types import Match, SearchResult
from tests.conftest import OpenGateway
from tests.core.search.cases import Case, cases, items
from tests.fakes import TableNormalizer, codes


def _names(matches: tuple[Match, ...]) -> list[str]:
    return [match.name for match in matches]


READERS: dict[str, Callable[[SearchResult], list[str]]] = {
    "mode": lambda result: [result.mode],
    "matches": lambda result: _names(result.matches),
    "first": lambda result: _names(result.matches[:1]),
    "related": lambda result: _names(result.related),
    "next": lambda result: _names(result.next_steps),
    "prerequisites": lambda result: _names(result.prerequisites),
    "proxies": lambda result: [
        match.name
        for matches in (result.matches, result.prerequisites, result.related, result.next_steps)
        for match in matches
        if match.direct
    ],
    "diagnostics": codes,
}


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.title)
async def test_search_result_is_as_the_case_describes(
    open_gateway: OpenGateway, case: Case
) -> None:
    """Only the parts of the result that the case lists are compared."""
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
    assert expected == {key: READERS[key](result) for key in expected}
