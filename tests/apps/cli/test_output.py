"""Values on their way to a screen or to JSON."""

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


def test_a_value_becomes_plain_json() -> None:
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


def test_a_table_shows_values_by_their_paths() -> None:
    """Also through lists, and where there is nothing."""
    rows = [{"a": {"b": [{"c": 1}, {"c": True}]}, "description": "One. Two."}, {"a": None}]

    assert "c       text  description\n1, yes        One." in _shown(
        table(rows, "a.b.c", "text=d", "description")
    )


def test_a_table_breaks_no_word_that_fits() -> None:
    """A long id takes its place from the text beside it."""
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


def test_a_supplement_is_explained_by_its_path() -> None:
    """An edge of the graph names its file and line."""
    result = SearchResult(mode="graph", related=(_MATCH,), cached=True)

    shown = _shown(explanation(result, ()))

    assert "predicate memberOf, object x, source g.md:12, declared no" in shown
    assert "direct       no" in shown
    assert "cached          yes" in shown


def test_what_came_nearest_is_shown_where_nothing_serves() -> None:
    """The warning speaks of what is nearest: a person must be able to read it."""
    counts = Counts(eligible=2)
    result = SearchResult(mode="vector", counts=counts, nearest=_MATCH, unmatched=("moon",))

    for shown in (_shown(search_table(result)), _shown(explanation(result, ()))):
        assert "two      50%         Second.\nNothing holds these words: moon" in shown


def test_a_kind_that_nothing_has_is_reported_as_that() -> None:
    """Rewording cannot help such a request."""
    shown = _shown(search_table(SearchResult(mode="hybrid")))

    assert "Nothing was found: there is nothing of this kind, tag and status here." == shown


def test_what_two_stages_say_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    """A folder that cannot be used is met by every build."""
    note = Diagnostic(stage="embed", code="store_unavailable", detail="'x' cannot be read")

    warn([note, replace(note, stage="catalog"), note])

    assert "warning: 'x' cannot be read [store_unavailable]\n" == capsys.readouterr().err


def test_nothing_that_steers_a_terminal_is_printed() -> None:
    hostile = "a\x1b[31mb\x9b2J\x07\r\nc\t\ud800"

    assert "a[31mb2J\nc\t?" == printable(hostile)
    assert "\x1b" not in _shown(table([{"name": hostile}], "name"))


def test_a_terminal_of_few_characters_ends_no_command(tmp_path: Path) -> None:
    """What it cannot show is escaped in JSON, and a question mark for people."""
    (tmp_path / "mcp.json").write_text('{"mcpServers": {}, "東京": 1}', encoding="utf-8")
    env = {"PYTHONIOENCODING": "ascii", "GATEWAY_CACHE_DIR": str(tmp_path)}

    data = child("-m", "gateway", "tools", "--json", cwd=tmp_path, env=env)
    shown = child("-m", "gateway", "search", "x", "--explain", cwd=tmp_path, env=env)

    assert "東京" in data.json["index"]["diagnostics"][0]["detail"]
    assert "unknown key '??'" in shown.out


def test_an_answer_without_text_is_its_structure_or_the_names_of_its_blocks() -> None:
    picture = InvokeResult(tool_id="a/b", content=(Content(type="image"),))
    data = InvokeResult(tool_id="a/b", structured={"n": 1})

    assert "[image; --json shows it]" == result_text(picture)
    assert {"n": 1} == json.loads(result_text(data))


@pytest.mark.parametrize(
    ("as_json", "document"),
    [(True, {"error": {"type": "Interrupted", "message": "stopped"}}), (False, None)],
)
def test_a_command_that_is_stopped_has_a_code_of_its_own(
    as_json: bool, document: object, capsys: pytest.CaptureFixture[str]
) -> None:
    """JSON is asked for in any case."""

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
