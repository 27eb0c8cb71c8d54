"""Folders of data sets, their catalogs and edges, and typing errors."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from benchmarks.data import ORIGIN_FILE, edge_documents, origin_of, read, sources
from benchmarks.ranking import query_texts
from benchmarks.typos import noisy
from graphs import extract_facts, write
from graphs import read as read_documents

FIXTURE = Path(__file__).parent / "fixture"


def test_tool_with_a_duplicate_name_is_put_into_a_second_server() -> None:
    """Names are unique within a server, but not in data sets."""
    benchmark = read(FIXTURE)

    assert ["home/play_music", "home-2/play_music", "tools/translate_text"] == [
        benchmark.entity_ids[tool] for tool in ("t6", "t7", "t8")
    ]


async def test_every_tool_of_the_data_is_listed_once() -> None:
    benchmark = read(FIXTURE)

    listed = [
        f"{source.server}/{tool.name}"
        for source in sources(benchmark)
        for tool in (await source.list_tools()).tools
    ]

    assert sorted(benchmark.tool_ids) == sorted(listed)


def test_sample_of_queries_is_always_the_same() -> None:
    """Queries are drawn by hash, so they are not simply the first ones."""
    few, more = read(FIXTURE, limit=2), read(FIXTURE, limit=3)

    assert few.queries == more.queries[:2]
    assert read(FIXTURE).queries[:2] != few.queries


def test_distractors_from_another_catalog_do_not_replace_tools() -> None:
    """The ids of the other catalog may be equal."""
    benchmark = read(FIXTURE, extra=[FIXTURE / "catalog.jsonl"])

    assert 8 == len(benchmark.tools)


def test_given_edges_are_written_as_documents_and_read(tmp_path: Path) -> None:
    """Edges to unknown tools are omitted."""
    written = edge_documents(read(FIXTURE))
    write(written, tmp_path)

    stated = extract_facts(read_documents(tmp_path))
    names = {fact.subject: fact.object for fact in stated if fact.predicate == "name"}
    needs = [(names[fact.subject], fact) for fact in stated if fact.predicate == "requires"]

    assert 2 == len(list(tmp_path.glob("*.md")))
    assert {"bank/transfer_money": 2, "bank/list_accounts": 1} == {
        name: sum(other == name for other, _ in needs) for name, _ in needs
    }
    assert all(fact.declared and fact.path for _, fact in needs)


@given(text=st.text(max_size=60))
def test_error_rate_of_zero_misspells_no_query(text: str) -> None:
    assert text == noisy(text, rate=0, seed=7, key="")


@given(
    words=st.lists(
        st.sampled_from(("a1b2c3", "x@y.org", "/usr/bin/file", "the", "is", "42")), min_size=1
    )
)
def test_arguments_and_short_words_are_not_misspelt(words: list[str]) -> None:
    """A misspelt address would be another address."""
    text = " ".join(words)

    assert text == noisy(text, rate=1, seed=7, key="q")


def test_queries_are_misspelt_by_their_ids() -> None:
    """All queries remain."""
    benchmark = read(FIXTURE)
    clean, typed = query_texts(benchmark), query_texts(benchmark, noise=1.0)

    assert clean.keys() == typed.keys()
    assert "accounts of the customer" == clean["q5"] != typed["q5"]


def test_data_set_has_the_origin_that_its_folder_names(tmp_path: Path) -> None:
    """Without a name, a known set has the origin of its group, and any other set its own origin."""
    named, known, other = (tmp_path / name for name in ("calls", "acebench_zh", "mine"))
    named.mkdir()
    (named / ORIGIN_FILE).write_text("bfcl\n", encoding="utf-8")

    assert ["bfcl", "acebench", "mine"] == [origin_of(item) for item in (named, known, other)]
