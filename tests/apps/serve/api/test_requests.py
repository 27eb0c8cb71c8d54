"""Validation of request bodies and parameters."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from httpx2 import AsyncClient

SEARCH = "/api/search/semantic"
JSON = {"Content-Type": "application/json"}


async def pieces() -> AsyncIterator[bytes]:
    """Yield a request body in pieces, so that its length is unknown."""
    for _ in range(3):
        yield b" " * 500_000


@pytest.mark.parametrize(
    ("content", "media", "expected"),
    [
        # A web page can send these media types without a preflight request.
        (b'{"query": "x"}', "", (415, "not_json")),
        (b'{"query": "x"}', "text/plain", (415, "not_json")),
        (b'{"query": "x"}', "application/x-www-form-urlencoded", (415, "not_json")),
        (b" " * 1_500_000, "application/json", (413, "too_large")),
        (pieces(), "application/json", (413, "too_large")),
        (b"", "application/json", (400, "not_json")),
        (b"{", "application/json", (400, "not_json")),
        (b'{"query": "x"} x', "application/json", (400, "not_json")),
        (b"\xff\xfe", "application/json", (400, "not_json")),
        (b'{"query": "\\ud800"}', "application/json", (400, "not_json")),
        (b"[" * 300 + b"]" * 300, "application/json", (400, "not_json")),
        (b'{"query": "x"}', "Application/JSON; charset=utf-8", (200, None)),
    ],
)
async def test_request_body_must_be_json_of_limited_size(
    empty_client: AsyncClient, content: Any, media: str, expected: tuple[int, str | None]
) -> None:
    answer = await empty_client.post(SEARCH, content=content, headers={"Content-Type": media})

    assert expected == (answer.status_code, answer.json().get("code"))


@pytest.mark.parametrize(
    ("body", "where"),
    [
        ({"query": "x", "max_results": 0}, "#/max_results"),
        ({"query": "x", "max_results": "7"}, "#/max_results"),
        ({"query": "x", "top_n": 7}, "#/top_n"),
        ({"query": "x" * 4097}, "#/query"),
        ({"tags": ["fine", ""]}, "#/tags/1"),
        ({"query": "x", "metadata_fields": ["a..b"]}, "#/metadata_fields/0"),
        ({"query": "x", "metadata_fields": ["a\n"]}, "#/metadata_fields/0"),
        ({"query": "x", "metadata_fields": ["a.b.c.d.e.f"]}, "#/metadata_fields/0"),
        ({"query": "x", "metadata_fields": ["$where"]}, "#/metadata_fields/0"),
        ({"query": "x", "a/b~c": 7}, "#/a~1b~0c"),
        ([], "#"),
    ],
)
async def test_validation_errors_name_the_field_without_its_value(
    empty_client: AsyncClient, body: object, where: str
) -> None:
    answer = await empty_client.post(SEARCH, json=body)

    assert 422 == answer.status_code
    assert [where] == [error["where"] for error in answer.json()["errors"]]
    assert "where" not in answer.json()["errors"][0]["detail"]


async def test_request_may_write_an_integer_as_a_float(empty_client: AsyncClient) -> None:
    """JSON Schema counts 36.0 as an integer."""
    whole = await empty_client.post(SEARCH, json={"query": "x", "max_results": 36.0})
    half = await empty_client.post(SEARCH, json={"query": "x", "max_results": 36.5})

    assert (200, 422) == (whole.status_code, half.status_code)


async def test_response_lists_a_limited_number_of_validation_errors(
    empty_client: AsyncClient,
) -> None:
    answer = await empty_client.post(SEARCH, json={f"a{number}": 1 for number in range(100)})

    assert 20 == len(answer.json()["errors"])


def nested(depth: int) -> str:
    inner = "1"
    for _ in range(depth):
        inner = f'{{"a": [{inner}]}}'
    return f'{{"kind": "agent", "name": "deep", "metadata": {inner}}}'


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (nested(20), (422, "too_deep")),
        ('{"kind": "agent", "name": "x", "metadata": {"a": NaN}}', (400, "not_json")),
        ('{"kind": "agent", "name": "x", "metadata": {"a": [-Infinity]}}', (400, "not_json")),
    ],
)
async def test_nesting_depth_of_metadata_is_limited(
    empty_client: AsyncClient, body: str, expected: tuple[int, str]
) -> None:
    answer = await empty_client.post("/api/entities", content=body, headers=JSON)

    assert expected == (answer.status_code, answer.json()["code"])


@pytest.mark.parametrize(
    ("query", "where"),
    [
        ("limit=0", "?limit"),
        ("limit=x", "?limit"),
        ("limit=1&limit=2", "?limit"),
        ("include_draft=perhaps", "?include_draft"),
        ("top=1", "?top"),
        ("kind=Agent", "?kind"),
    ],
)
async def test_unknown_query_parameters_are_refused(
    empty_client: AsyncClient, query: str, where: str
) -> None:
    """A misspelt filter would otherwise be ignored."""
    answer = await empty_client.get(f"/api/entities?{query}")

    assert (422, where) == (answer.status_code, answer.json()["errors"][0]["where"])
