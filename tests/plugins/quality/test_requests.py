from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.errors import ConfigError, InvalidRequestError
from gateway.gateway import Gateway
from gateway.plugins.quality import (
    EvalRequest,
    RequestSet,
    catalog_digest,
    catalog_digests,
    freeze,
    parse,
    save_request,
    to_json_lines,
)
from gateway.types import Filters, ToolDefinition
from tests.conftest import OpenGateway
from tests.fakes import tool

TABLE = """
# What our people ask

| request | tools |
| --- | --- |
| what do I owe | `list_invoices` |
| find a flight and book it | search_flights -> book_flight |
| mail with the weather \\| today | get_weather, send_email or read_email |
| feed the cat | none |
"""


def test_parse_reads_a_markdown_table() -> None:
    requests = parse(TABLE, where="asked.md").requests

    assert [
        ("what do I owe", (("list_invoices",),), False),
        ("find a flight and book it", (("search_flights",), ("book_flight",)), True),
        ("mail with the weather | today", (("get_weather",), ("send_email", "read_email")), False),
        ("feed the cat", (), False),
    ] == [(request.text, request.wanted, request.ordered) for request in requests]


def test_parse_reads_a_table_without_a_heading() -> None:
    assert 1 == len(parse("| what do I owe | list_invoices |", where="x").requests)


def test_parse_reads_json_lines() -> None:
    text = (
        '# a remark\n{"request": "q", "tools": ["a", ["b", "c"]], "ordered": true}\n\n'
        '{"request": "r", "tools": "none", "language": "de"}\n'
    )

    assert RequestSet(
        requests=(
            EvalRequest(text="q", wanted=(("a",), ("b", "c")), ordered=True),
            EvalRequest(text="r", language="de"),
        )
    ) == parse(text, where="x")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "x: there are no requests"),
        ("| a | b |\n| only |", "x, line 2: | what is asked | tool |"),
        ("what is this", "x, line 1: the line is neither a table row nor JSON"),
        ('{"request": ""}', "x, line 1: request must be a text that is not empty"),
        ('{"request": "a", "tool": "b"}', "x, line 1: unknown key 'tool'"),
        ('{"request": "a", "tools": [1]}', "x, line 1: tools"),
        ("[1]", "x, line 1: it must be an object"),
    ],
)
def test_parse_errors_name_the_line(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        parse(text, where="x")

    assert str(raised.value).startswith(message)


def frozen(gateway: Gateway, *requests: EvalRequest) -> RequestSet:
    return freeze(requests, asyncio.run(gateway.snapshot()), Filters())


def test_frozen_requests_contain_ids_and_the_catalog_digest(
    open_gateway: OpenGateway, catalog: tuple[ToolDefinition, ...]
) -> None:
    gateway = open_gateway(catalog)
    request_set = frozen(
        gateway, *parse(TABLE, where="x").requests, *parse(TABLE, where="x").requests
    )

    assert 4 == len(request_set.requests)
    assert (("shelf/search_flights",), ("shelf/book_flight",)) == request_set.requests[1].wanted
    assert request_set == parse(to_json_lines(request_set), where="y")
    assert request_set.catalog


def test_freeze_refuses_an_unknown_tool_with_similar_names(
    open_gateway: OpenGateway, catalog: tuple[ToolDefinition, ...]
) -> None:
    gateway = open_gateway(catalog)

    with pytest.raises(InvalidRequestError, match=r"'q': unknown tool.*list_invoices"):
        frozen(gateway, EvalRequest(text="q", wanted=(("list_invoice",),)))


def test_catalog_digest_changes_with_any_definition(
    open_gateway: OpenGateway, catalog: tuple[ToolDefinition, ...]
) -> None:
    """The order of the tools does not matter."""
    other = (*catalog[1:], tool("send_email", "Send e-mails."))
    digests = []
    for tools in (catalog, catalog[::-1], other, catalog[1:]):
        snapshot = asyncio.run(open_gateway(tools).snapshot())
        digests.append(catalog_digest(catalog_digests(snapshot.visible(Filters()))))

    assert digests[0] == digests[1]
    assert 3 == len(set(digests))


ASKED = EvalRequest(text="what do | I owe", wanted=(("shelf/list", "get"), ("pay",)), ordered=True)


def test_saved_request_is_added_after_the_last_row(tmp_path: Path) -> None:
    """All other bytes stay unchanged."""
    file = tmp_path / "asked.md"
    before = f"{TABLE}\nWhat stands below, too.\r\n"
    file.write_bytes(before.encode())

    added = [save_request(file, ASKED), save_request(file, ASKED)]

    row = "| what do \\| I owe | shelf/list or get -> pay |\n"
    after = file.read_bytes().decode()
    assert [True, False] == added
    assert before == after.replace(row, "")
    assert after.endswith(f"| none |\n{row}\nWhat stands below, too.\r\n")
    assert ASKED == parse(after, where="asked.md").requests[-1]


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("a.md", None, "| request | tool(s) |\n| --- | --- |\n| feed the cat | none |\n"),
        (
            "a.md",
            "# Ours",
            "# Ours\n| request | tool(s) |\n| --- | --- |\n| feed the cat | none |\n",
        ),
        ("a.md", "| q | t |\n|---|---|", "| q | t |\n|---|---|\n| feed the cat | none |\n"),
        ("a.jsonl", None, '{"tools": "none", "request": "feed the cat"}\n'),
        (
            "a.jsonl",
            '{"catalog": "x"}\n# ours',
            '{"catalog": "x"}\n# ours\n{"tools": "none", "request": "feed the cat"}\n',
        ),
        ("a.txt", "| q | t |\n", "| q | t |\n| feed the cat | none |\n"),
        (
            "a.md",
            '{"request": "q"}\n',
            '{"request": "q"}\n{"tools": "none", "request": "feed the cat"}\n',
        ),
    ],
)
def test_request_is_saved_in_the_format_of_the_file(
    tmp_path: Path, name: str, before: str | None, after: str
) -> None:
    file = tmp_path / "folder" / name
    if before is not None:
        file.parent.mkdir()
        file.write_text(before)

    assert save_request(file, EvalRequest(text=" feed  the\ncat "))

    assert after == file.read_text()


@pytest.mark.parametrize(
    ("name", "before", "request_"),
    [
        ("a.md", "", EvalRequest(text="   ")),
        ("a.jsonl", "", EvalRequest(text="")),
        ("a.md", "", EvalRequest(text="x", wanted=(("a, b",),))),
        ("a.md", "", EvalRequest(text="x", language="de")),
        ("a.jsonl", "not JSON", EvalRequest(text="x")),
    ],
)
def test_file_is_unchanged_if_a_request_cannot_be_saved(
    tmp_path: Path, name: str, before: str, request_: EvalRequest
) -> None:
    file = tmp_path / name
    file.write_text(before)

    with pytest.raises(ConfigError, match=name):
        save_request(file, request_)

    assert before == file.read_text()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(st.lists(st.text(min_size=1), min_size=1, max_size=3), st.sampled_from(["md", "jsonl"]))
def test_any_saved_request_is_read_back(tmp_path: Path, texts: list[str], suffix: str) -> None:
    file = tmp_path / f"asked.{suffix}"
    file.unlink(missing_ok=True)
    cleaned = [" ".join(text.split()) for text in texts]

    for text in filter(None, cleaned):
        save_request(file, EvalRequest(text=text, wanted=(("shelf/find",),)))

    saved = parse(file.read_text(), where="x").requests if file.exists() else ()
    assert [*dict.fromkeys(filter(None, cleaned))] == [request.text for request in saved]
