"""What a client may send."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.conftest import OpenGateway
from tests.serve.api.client import open_client

SEARCH = "/api/search/semantic"
JSON = {"Content-Type": "application/json"}


async def refused(
    open_gateway: OpenGateway, content: bytes | AsyncIterator[bytes], headers: dict[str, str] = JSON
) -> tuple[int, dict[str, object]]:
    """Send a body to be refused."""
    async with open_client(open_gateway()) as client:
        answer = await client.post(SEARCH, content=content, headers=headers)
        return answer.status_code, answer.json()


@pytest.mark.parametrize("media", ["", "text/plain", "application/x-www-form-urlencoded"])
async def test_only_json_is_read(open_gateway: OpenGateway, media: str) -> None:
    """What a web page could send without asking is not."""
    status, _ = await refused(open_gateway, b'{"query": "x"}', {"Content-Type": media})

    assert 415 == status


async def test_a_charset_may_be_named(open_gateway: OpenGateway) -> None:
    """JSON is UTF-8 anyway."""
    status, _ = await refused(
        open_gateway, b'{"query": "x"}', {"Content-Type": "Application/JSON; charset=utf-8"}
    )

    assert 200 == status


async def test_a_large_body_is_refused_as_told_and_as_sent(open_gateway: OpenGateway) -> None:
    """By its length, and where none is given by what comes."""

    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(3):
            yield b" " * 500_000

    assert 413 == (await refused(open_gateway, b" " * 1_500_000))[0]
    assert 413 == (await refused(open_gateway, pieces()))[0]


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b'{"query": "x"} x', b"\xff\xfe", b'{"query": "\\ud800"}', b"[" * 300 + b"]" * 300],
)
async def test_what_is_no_json_is_refused(open_gateway: OpenGateway, body: bytes) -> None:
    """Broken, not Unicode, without end."""
    status, told = await refused(open_gateway, body)

    assert (400, "not_json") == (status, told["code"])


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
async def test_what_does_not_fit_is_named(
    open_gateway: OpenGateway, body: object, where: str
) -> None:
    """Each fault by where it stands, and never what was given."""
    async with open_client(open_gateway()) as client:
        answer = await client.post(SEARCH, json=body)

    assert 422 == answer.status_code
    assert [where] == [each["where"] for each in answer.json()["errors"]]
    assert "where" not in answer.json()["errors"][0]["detail"]


async def test_a_whole_number_may_be_written_with_a_point(open_gateway: OpenGateway) -> None:
    """JSON Schema says so."""
    async with open_client(open_gateway()) as client:
        answers = [
            await client.post(SEARCH, json={"query": "x", "max_results": number})
            for number in (36.0, 36.5)
        ]

    assert [200, 422] == [each.status_code for each in answers]


async def test_no_answer_names_faults_without_end(open_gateway: OpenGateway) -> None:
    """Twenty tell enough."""
    async with open_client(open_gateway()) as client:
        answer = await client.post(SEARCH, json={f"a{each}": 1 for each in range(100)})

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
async def test_what_is_free_is_not_without_bounds(
    open_gateway: OpenGateway, body: str, expected: tuple[int, str]
) -> None:
    """Metadata may be any JSON, of a sane depth."""
    async with open_client(open_gateway()) as client:
        answer = await client.post("/api/entities", content=body, headers=JSON)

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
async def test_parameters_are_checked_too(
    open_gateway: OpenGateway, query: str, where: str
) -> None:
    """A misspelt one is no filter."""
    async with open_client(open_gateway()) as client:
        answer = await client.get(f"/api/entities?{query}")

    assert (422, where) == (answer.status_code, answer.json()["errors"][0]["where"])
