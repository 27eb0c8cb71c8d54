"""Everyday queries in languages that one of the packaged embedding models does not know."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway import Gateway, SyncGateway
from gateway.cli.commands.demo import find_program
from gateway.options import Options, UpstreamOptions

REQUESTS = Path(__file__).parent / "data" / "everyday_requests.jsonl"
"""Ten queries for the demo's servers in each of twelve languages, with the tools that serve them.
No parameter was tuned on them."""


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SyncGateway]:
    """A gateway with the 102 tools of `gateway demo` and the packaged model."""
    folder = tmp_path_factory.mktemp("languages")
    options = Options(upstream=UpstreamOptions(connect_timeout_s=120, first_listing_s=120))
    gateway = Gateway(strategy="auto", embedder="local", options=options)
    for name, (program, *arguments) in {
        "time": ("mcp-server-time",),
        "excel": ("excel-mcp-server", "stdio"),
        "word": ("word_mcp_server",),
    }.items():
        gateway.add_server(name, command=find_program(program), args=arguments, cwd=folder)
    with SyncGateway(gateway) as catalog:
        assert catalog.report().tools == 102
        yield catalog


def first_tools(catalog: SyncGateway, query: str, limit: int) -> list[str]:
    return [match.id.rpartition("/")[2] for match in catalog.search(query, limit=limit).matches]


@pytest.mark.parametrize(
    "query",
    ["котра година", "котра година у Львові", "котра зараз година в Києві"],  # noqa: RUF001
)
def test_ukrainian_query_for_the_time_finds_the_clock_tool(demo: SyncGateway, query: str) -> None:
    assert "get_current_time" in first_tools(demo, query, 3)


def test_everyday_queries_in_twelve_languages_find_their_tools(demo: SyncGateway) -> None:
    found_counts, all_requests = Counter[str](), Counter[str]()
    for line in REQUESTS.read_text(encoding="utf-8").splitlines():
        request = json.loads(line)
        all_requests[request["lang"]] += 1
        tools = first_tools(demo, request["query"], 5)
        found_counts[request["lang"]] += bool(set(tools) & set(request["tools"]))

    assert set(all_requests.values()) == {10}
    assert sum(count >= 8 for count in found_counts.values()) >= 8, found_counts
    assert min(found_counts[language] for language in all_requests) >= 5, found_counts
