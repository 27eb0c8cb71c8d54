"""`gateway lint`."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from gateway.cli.commands.lint import rules_diff
from gateway.errors import ConfigError
from gateway.plugins.quality import Suggestion
from gateway.testing import ScriptedModel, Turn
from tests.apps.cli.running import EXCEL, TIME, Place, Ran

ASKED = """
| request | tool |
| --- | --- |
| clickable grandma chooser thingamajig | add_slicer |
"""


@pytest.fixture
def files(place: Place) -> Place:
    """Folder with two servers, and a file with one request in words that no tool contains."""
    place.config({"time": TIME, "excel": EXCEL}, options={"graph": {"bundled": False}})
    place.put("asked.md", ASKED)
    return place


def config(files: Place) -> tuple[str, ...]:
    return "-c", str(files.folder / "servers.json"), "--strategy", "graph"


def test_lint_fails_for_findings_only_with_strict(files: Place) -> None:
    """The workbook server leaves most of its parameters without a description."""
    words = ("lint", *config(files), "--no-suggest")
    data, output, strict = (
        files.run(*words, "--json"),
        files.run(*words),
        files.run(*words, "--strict"),
    )

    assert (0, 0, 1) == (data.code, output.code, strict.code)
    result = {(finding["tool"], finding["code"]) for finding in data.json["findings"]}
    assert ("excel/add_slicer", "undescribed_parameters") in result
    assert "time" not in {tool.partition("/")[0] for tool, _ in result}
    (effect,) = [
        finding for finding in data.json["effects"] if finding["code"] == "undescribed_parameters"
    ]
    assert "rules" == effect["source"]
    assert 0 < effect["with_it"] <= 1
    assert "these parameters have no description" in output.out
    assert "excel/clear_range" in output.out
    assert [] == data.json["suggestions"]


def test_lint_prints_a_search_text_of_a_model_as_a_diff(files: Place) -> None:
    """`lint` does not change the configuration. After the diff is applied, the tool is found."""
    written = "A clickable chooser for grandma, also called thingamajig."
    words = ("lint", *config(files), "--requests", str(files.folder / "asked.md"))
    before = (files.folder / "servers.json").read_text()
    diff = files.folder / "lint.diff"
    with ScriptedModel(lambda _: Turn(written)) as model:
        env = {"GATEWAY_NORMALIZE_BASE_URL": model.base_url, "GATEWAY_NORMALIZE_API_KEY": "k"}
        more = ("--model", "m", "--out", str(diff), "--json")
        ran, again = (
            files.run(*words, *more, env={**env, "NO_PROXY": "127.0.0.1"}) for _ in range(2)
        )

    (stored,) = [
        suggestion
        for suggestion in ran.json["suggestions"]
        if suggestion["tool"] == "excel/add_slicer"
    ]
    assert (0, "user", written, 0, 1) == (
        ran.code, stored["judged_by"], stored["search_text"], stored["before"], stored["after"]
    )  # fmt: skip
    assert before == (files.folder / "servers.json").read_text()
    assert ran.json["diff"] == diff.read_text()
    assert 2 == again.code
    search = ("search", "grandma thingamajig", *config(files), "--json")
    missed = files.run(*search)
    apply(diff)
    assert "excel/add_slicer" not in match_ids(missed)
    assert "excel/add_slicer" in match_ids(files.run(*search))


def match_ids(ran: Ran) -> list[str]:
    return [match["id"] for match in ran.json["result"]["matches"]]


def apply(diff: Path) -> None:
    """Apply the diff to the configuration with ``git apply``."""
    subprocess.run(["git", "apply", diff.name], cwd=diff.parent, check=True)  # noqa: S607


def suggestion(tool: str) -> Suggestion:
    return Suggestion(
        tool=tool, search_text="Words.", judged_by="user", requests=1, before=0, after=1
    )


@pytest.mark.parametrize("text", ['{"mcpServers": {}}', '{\n  // mine\n  "rules": {}\n}\n', ""])
def test_diff_of_lint_changes_only_the_rules_of_the_configuration(
    tmp_path: Path, text: str
) -> None:
    """Comments stay, and a file without a final newline is patched too."""
    file = tmp_path / "mcp.json"
    file.write_text(text)
    diff = tmp_path / "lint.diff"
    diff.write_text(rules_diff(file, [suggestion("a/b"), suggestion("a/c")]))
    apply(diff)

    assert all(line in file.read_text() for line in text.splitlines() if "mine" in line)
    without = file.read_text().replace("// mine", "")
    assert {key: {"search_text": "Words."} for key in ("a/b", "a/c")} == json.loads(without)[
        "rules"
    ]


def test_diff_of_lint_is_empty_if_the_rules_exist(tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    file.write_text('{"rules": {"a/b": {"tags": ["x"]}}}')

    assert '"tags": [' in rules_diff(file, [suggestion("a/b")]).partition("+++")[2]
    assert "" == rules_diff(file, [])


def test_lint_reports_a_missing_file_of_requests(files: Place) -> None:
    assert 2 == files.run("lint", *config(files), "--requests", "nowhere.md").code
    with pytest.raises(ConfigError):
        rules_diff(files.put("bad.json", "[]"), [suggestion("a/b")])
