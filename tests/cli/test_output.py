"""Values on their way to a screen or to JSON."""

from __future__ import annotations

import json
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
import typer
from rich.console import Console

from gateway.cli.exit_codes import INTERRUPTED
from gateway.cli.output import format_json, printable, report_errors, to_jsonable, warn
from gateway.cli.progress import show_progress
from gateway.cli.tables import (
    evidence_text,
    explanation,
    path_text,
    result_text,
    search_table,
)
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
from tests.cli.running import child

_STEPS = (
    PathStep(
        subject="urn:tool-gateway:tool:a/one", predicate="memberOf", object="x", source="g.md:12"
    ),
    PathStep(subject="urn:tool-gateway:tool:a/two", predicate="memberOf", object="x"),
)
_MATCH = Match(
    id="a/two",
    name="two",
    server="a",
    description="Second.",
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
    return file.getvalue()


def test_a_value_becomes_plain_json() -> None:
    values = {
        "note": Diagnostic(stage="graph", code="no_match"),
        "filters": Filters(tags=frozenset({"b", "a"})),
        "result": SearchResult(mode="empty"),
        "not a number": float("nan"),
        "path": Path("x"),
    }

    data = json.loads(json.dumps(to_jsonable(values)))

    assert data["note"]["meaning"].startswith("Nothing in the catalog")
    assert data["filters"]["tags"] == ["a", "b"]
    assert data["result"]["degraded"] is False
    assert (None, "x") == (data["not a number"], data["path"])


def test_an_edge_of_the_graph_names_its_file_and_line() -> None:
    assert path_text(_STEPS) == "a/one -memberOf-> x <-memberOf- a/two (g.md:12, derived)"
    assert path_text((PathStep(subject="p", predicate="q", object="r", declared=True),)) == (
        "p -q-> r (declared)"
    )


def test_a_supplement_is_explained_by_its_path() -> None:
    result = SearchResult(mode="graph", related=(_MATCH,), cached=True)

    shown = _shown(explanation(result, diagnostics=()))

    assert "graph path: a/one -memberOf-> x <-memberOf- a/two" in shown
    assert "outside the window" in shown
    assert "From the cache." in shown
    assert "No diagnostics." in shown


def test_what_came_nearest_is_shown_where_nothing_serves() -> None:
    """The warning speaks of what is nearest: a person must be able to read it."""
    counts = Counts(eligible=2)
    result = SearchResult(mode="vector", counts=counts, nearest=_MATCH, unmatched=("moon",))
    data = "Nothing was found.\nNearest: two, confidence 50%: Second.\n"

    for shown in (_shown(search_table(result)), _shown(explanation(result, diagnostics=()))):
        assert shown.startswith(f"{data}Nothing holds these words: moon\n")


def test_a_kind_that_nothing_has_is_reported_as_that() -> None:
    """Rewording cannot help such a request."""
    shown = _shown(search_table(SearchResult(mode="hybrid")))

    assert "Nothing was found: there is nothing of this kind, tag and status here.\n" == shown


def test_an_exact_name_is_evidence() -> None:
    assert evidence_text(Evidence(exact_name=True)) == "named exactly"


def test_what_two_stages_say_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    """A folder that cannot be used is met by every build."""
    note = Diagnostic(stage="embed", code="store_unavailable", detail="'x' cannot be read")

    warn([note, replace(note, stage="catalog"), note])

    assert "warning: 'x' cannot be read [store_unavailable]\n" == capsys.readouterr().err


def test_nothing_that_steers_a_terminal_is_printed() -> None:
    assert printable("a\x1b[31mb\x9b2J\x07\r\nc\t\ud800") == "a[31mb2J\nc\t?"


@pytest.mark.parametrize(("encoding", "shown"), [("utf-8", True), ("ascii", False)])
def test_json_is_escaped_only_where_it_must_be(encoding: str, shown: bool) -> None:
    text = format_json({"city": "東京"}, encoding=encoding)

    assert {"city": "東京"} == json.loads(text)
    assert shown == ("東京" in text)


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
    ("steps", "told"),
    [
        ([], "stopped"),
        ([("servers", 3, 3)], "stopped"),
        (
            [("servers", 0, 3)],
            "stopped: Starting servers and listing their tools (0 of 3 done)",
        ),
        (
            [("servers", 3, 3), ("embeddings", 64, 200)],
            "stopped: Embedding what is new (64 of 200 done)",
        ),
    ],
)
def test_who_stops_a_command_is_reported_what_was_under_way(
    steps: list[tuple[str, int, int]], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not a word would leave open whether anything was done; and JSON is asked for in any case."""

    def stopped() -> None:
        with report_errors(as_json=True), show_progress() as progress:
            for step in steps:
                progress(*step)
            raise KeyboardInterrupt

    with pytest.raises(typer.Exit) as ended:
        stopped()

    out, err = capsys.readouterr()
    assert INTERRUPTED == ended.value.exit_code
    assert f"{told}\n" == err
    assert {"type": "Interrupted", "message": told} == json.loads(out)["error"]


def test_a_command_that_is_stopped_says_nothing_on_standard_output_unasked(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(typer.Exit), report_errors(as_json=False):
        raise KeyboardInterrupt

    assert ("", "stopped\n") == capsys.readouterr()
