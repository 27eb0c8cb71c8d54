"""Conversion of values to JSON and to tables."""

from __future__ import annotations

import json
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
import typer
from rich.console import Console

from gateway.cli import INTERRUPTED
from gateway.cli.command import report_errors, warn
from gateway.cli.commands.search import explanation, result_text, search_table
from gateway.cli.session import show_progress
from gateway.cli.tables import printable, table, to_jsonable
from gateway.types import (
    Content,
    Counts,
    Diagnostic,
    Evidence,
    Filters,
    InvokeResult,
    Match,
    PathStep,
    SearchResult,
)
from tests.apps.cli.running import child

_STEPS = (
    PathStep(subject="a/one", predicate="memberOf", object="x", source="g.md:12"),
    PathStep(subject="a/two", predicate="memberOf", object="x"),
    PathStep(subject="a/two", predicate="requires", object="a/one", declared=True),
)
_MATCH = Match(
    id="a/two",
    name="two",
    server="a",
    description="Second. It is more than that.",
    score=1.0,
    confidence=0.5,
    evidence=Evidence(path=_STEPS),
    direct=False,
)


def _shown(renderable: object) -> str:
    console = Console(file=StringIO(), width=200)
    console.print(renderable)
    file = console.file
    assert isinstance(file, StringIO)
    return "\n".join(line.strip() for line in file.getvalue().splitlines())


def test_to_jsonable_returns_plain_json_values() -> None:
    values = {
        "note": Diagnostic(stage="graph", code="no_match"),
        "filters": Filters(tags=frozenset({"b", "a"})),
        "result": SearchResult(mode="empty"),
        "not a number": float("nan"),
        "path": Path("x"),
    }

    data = json.loads(json.dumps(to_jsonable(values)))

    assert data["note"]["meaning"].startswith("The catalog probably")
    assert data["filters"]["tags"] == ["a", "b"]
    assert data["result"]["degraded"] is False
    assert (None, "x") == (data["not a number"], data["path"])


def test_table_shows_the_values_at_the_paths_of_its_columns() -> None:
    rows = [{"a": {"b": [{"c": 1}, {"c": True}]}, "description": "One. Two."}, {"a": None}]

    assert "c       text  description\n1, yes        One." in _shown(
        table(rows, "a.b.c", "text=d", "description")
    )


def test_table_does_not_break_words_that_fit() -> None:
    text = "Create a review of the internationalization."
    rows = [{"id": "github/create_pull_request_review", "listed": "3 min ago", "description": text}]
    console = Console(file=StringIO(), width=70)
    console.print(table(rows, "id", "listed", "description"))
    file = console.file
    assert isinstance(file, StringIO)
    words = file.getvalue().split()

    assert {"github/create_pull_request_review", *text.split()} < {*words}
    narrow = Console(file=StringIO(), width=30)
    narrow.print(table(rows, "id", "listed", "description"))
    assert isinstance(narrow.file, StringIO)
    assert all(len(line) <= 30 for line in narrow.file.getvalue().splitlines())


def test_explanation_of_a_supplement_shows_its_path_in_the_graph() -> None:
    result = SearchResult(mode="graph", related=(_MATCH,), cached=True)

    output = _shown(explanation(result, ()))

    assert "predicate memberOf, object x, source g.md:12, declared no" in output
    assert "direct       no" in output
    assert "cached          yes" in output


def test_search_without_matches_shows_the_nearest_entity() -> None:
    """The warning about the search mentions the nearest entity."""
    counts = Counts(eligible=2)
    result = SearchResult(mode="vector", counts=counts, nearest=_MATCH, unmatched=("moon",))

    for output in (_shown(search_table(result)), _shown(explanation(result, ()))):
        assert "two      50%         Second.\nNo entity contains these words: moon" in output


def test_search_says_that_no_entity_has_the_requested_kind() -> None:
    """Other words in the query would not help."""
    output = _shown(search_table(SearchResult(mode="hybrid")))

    assert "Nothing was found: no entity has this kind, tag and status." == output


def test_equal_warnings_are_printed_once(capsys: pytest.CaptureFixture[str]) -> None:
    note = Diagnostic(stage="embed", code="store_unavailable", detail="'x' cannot be read")

    warn([note, replace(note, stage="catalog"), note])

    assert "warning: 'x' cannot be read [store_unavailable]\n" == capsys.readouterr().err


def test_control_characters_of_servers_are_not_printed() -> None:
    hostile = "a\x1b[31mb\x9b2J\x07\r\nc\t\ud800"

    assert "a[31mb2J\nc\t?" == printable(hostile)
    assert "\x1b" not in _shown(table([{"name": hostile}], "name"))


def test_commands_print_to_a_terminal_with_a_small_character_set(tmp_path: Path) -> None:
    """Other characters are escaped in JSON, and replaced by a question mark in tables."""
    (tmp_path / "mcp.json").write_text('{"mcpServers": {}, "東京": 1}', encoding="utf-8")
    env = {"PYTHONIOENCODING": "ascii", "GATEWAY_CACHE_DIR": str(tmp_path)}

    data = child("-m", "gateway", "tools", "--json", cwd=tmp_path, env=env)
    output = child("-m", "gateway", "search", "x", "--explain", cwd=tmp_path, env=env)

    assert "東京" in data.json["index"]["diagnostics"][0]["detail"]
    assert "unknown key '??'" in output.out


def test_call_prints_structured_content_or_block_types_of_an_answer_without_text() -> None:
    picture = InvokeResult(tool_id="a/b", content=(Content(type="image"),))
    data = InvokeResult(tool_id="a/b", structured={"n": 1})

    assert "[image; --json shows it]" == result_text(picture)
    assert {"n": 1} == json.loads(result_text(data))


@pytest.mark.parametrize(
    ("as_json", "document"),
    [(True, {"error": {"type": "Interrupted", "message": "stopped"}}), (False, None)],
)
def test_interrupted_command_ends_with_its_own_exit_code(
    as_json: bool, document: object, capsys: pytest.CaptureFixture[str]
) -> None:

    def stopped() -> None:
        with report_errors(as_json=as_json), show_progress() as progress:
            progress("servers", 0, 3)
            raise KeyboardInterrupt

    with pytest.raises(typer.Exit) as ended:
        stopped()

    out, err = capsys.readouterr()
    step = "Starting servers and listing their tools: 3\n"
    assert (INTERRUPTED, f"{step}stopped\n") == (ended.value.exit_code, err)
    assert document == json.loads(out or "null")
