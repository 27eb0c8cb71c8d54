"""The documents say what the code says."""

from __future__ import annotations

import ast
import builtins
import dataclasses
import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import get_args

import pytest

import gateway
from gateway import errors, hookspecs, options, types
from gateway.options.provision import ProvisionOptions
from gateway.plugin_manager import DEFAULT_PLUGINS
from gateway.runtime.telemetry_names import METRICS
from gateway.serve.http_options import HttpOptions
from gateway.testing import Call, ModelRequest, ScriptedModel, Turn, script
from tests.metrics import documented

ROOT = Path(__file__).parents[1]
OPTION_CLASSES = (
    options.SearchOptions,
    options.GraphOptions,
    options.UpstreamOptions,
    options.CacheOptions,
    options.IndexOptions,
    options.DiscoveryOptions,
    options.CatalogOptions,
    options.CustomKind,
    options.ChatOptions,
    options.ProgramsOptions,
    options.UsageOptions,
    options.AuditOptions,
    options.Options,
    ProvisionOptions,
    HttpOptions,
)


def rows(name: str) -> dict[str, str]:
    """The table rows of a document, by their first cell without its backticks."""
    lines = (ROOT / "docs" / name).read_text(encoding="utf-8").splitlines()
    cells = (line.split("|", 2) for line in lines if line.startswith("| `"))
    return {first.strip().strip("`"): rest for _, first, rest in cells}


def _default(field: dataclasses.Field[object]) -> object:
    if field.default_factory is dataclasses.MISSING:
        return field.default
    return f"{type(field.default_factory()).__name__}()"


def test_every_option_and_its_default_are_documented() -> None:
    """An option that nobody can read about does not exist for its user."""
    expected = {
        f"{owner.__name__}.{field.name}": repr(_default(field)).strip("'")
        for owner in OPTION_CLASSES
        for field in dataclasses.fields(owner)
    }

    documented = {
        name: rest.split("|")[0].strip().strip("`").strip("'\"")
        for name, rest in rows("options.md").items()
        if "Options." in name or name.startswith("CustomKind.")
    }
    assert expected == documented


def test_every_hook_and_every_plugin_of_ours_is_documented() -> None:
    hooks = {name for name in vars(hookspecs) if name.startswith("register_")}
    documented = {name.partition("(")[0] for name in rows("plugins.md")}

    assert {*hooks, *DEFAULT_PLUGINS} == documented


def test_every_diagnostic_code_is_documented_with_its_meaning() -> None:
    """Codes are for people too: the table in the code and the one in the document are one."""
    documented = rows("diagnostics.md")
    expected = {
        code: f" {meaning} | {'yes' if code in types.DEGRADING else 'no'} |"
        for code, meaning in types.CODES.items()
    }

    assert expected == {code: rest for code, rest in documented.items() if code.islower()}


def test_every_code_has_a_meaning_and_is_used() -> None:
    """A type checker knows a misspelt code; a code that nobody emits is a promise not kept."""
    home = ROOT / "gateway" / "types" / "diagnostics.py"
    written = {
        node.value
        for path in (ROOT / "gateway").rglob("*.py")
        if path != home
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }

    assert get_args(types.Code) == tuple(types.CODES)
    assert set() == set(types.CODES) - written


def test_every_error_is_documented() -> None:
    """A caller learns from the document which errors to expect."""
    found = (value for value in vars(errors).values() if isinstance(value, type))
    names = {value.__name__ for value in found if issubclass(value, errors.GatewayError)}

    assert names - {"GatewayError"} <= set(rows("diagnostics.md"))


@pytest.mark.requirement("auto:rule-10")
def test_every_metric_is_documented_as_it_is() -> None:
    """Dashboards are built from the document."""
    expected = {
        name: [metric.kind, f"`{metric.unit}`", metric.description]
        for name, metric in METRICS.items()
    }

    rows_of = {name: row.cells for name, row in documented().items() if len(row.cells) == 3}
    assert expected == rows_of


def test_the_glossary_has_each_word_once_in_alphabetical_order() -> None:
    """A word that is looked up is found."""
    lines = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8").splitlines()
    words = [
        line.split("|")[1].strip().strip("`").casefold()
        for line in lines
        if line.startswith("| ") and not line.startswith(("| word |", "| --- |"))
    ]

    assert len(words) > 30
    assert sorted({*words}) == words


def _prose(document: Path) -> str:
    """The text of a document without its code."""
    text = document.read_text(encoding="utf-8")
    return re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)


def test_links_between_documents_lead_somewhere() -> None:
    """A link that leads nowhere costs its reader's trust."""
    documents = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    broken = [
        f"{document.name}: {target}"
        for document in documents
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", _prose(document))
        if not (document.parent / target).exists()
    ]

    assert [] == broken


def test_the_guide_for_contributors_names_files_that_exist() -> None:
    """A file that was moved or renamed would send its reader nowhere."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    paths = re.findall(r"`((?:gateway|tests|docs|examples)/[^`]*|\.ci/run)`", text)
    missing = [path for path in paths if not any(ROOT.glob(path))]

    assert len(paths) > 30
    assert [] == missing


@pytest.mark.parametrize("entrance", ["README.md", "docs/README.md"])
def test_an_entrance_leads_to_every_page(entrance: str) -> None:
    """A page that nobody is led to is read by nobody."""
    start = ROOT / entrance
    links = re.findall(r"\]\(([^)#:]+\.md)", start.read_text(encoding="utf-8"))
    linked = {(start.parent / link).resolve() for link in links}

    assert set() == {*(ROOT / "docs").glob("*.md")} - linked - {start}


def _decisions() -> list[Path]:
    """The pages of the decisions, without their index."""
    return sorted((ROOT / "docs" / "adr").glob("[0-9]*.md"))


def test_the_index_of_decisions_has_each_title() -> None:
    """A decision that is missing in the index is overlooked."""
    index = (ROOT / "docs" / "adr" / "README.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| (\d+) \| \[(.+)\]\((.+)\) \|", index, re.MULTILINE)
    titles = (page.read_text(encoding="utf-8").splitlines()[0] for page in _decisions())
    expected = [
        (*title.removeprefix("# ").split(". ", 1), page.name)
        for title, page in zip(titles, _decisions(), strict=True)
    ]

    assert expected == listed


def test_each_decision_keeps_to_the_form() -> None:
    """One decision a page: what was decided, what was not, and which test holds it."""
    headings = ["Status", "Context", "Decision", "Rejected", "Consequences", "Confirmation"]
    for page in _decisions():
        text = page.read_text(encoding="utf-8")

        assert headings == re.findall(r"^## (\w+)", text, re.MULTILINE), page.name
        assert len(text.splitlines()) <= 80, page.name


def examples(page: str = "README.md") -> list[str]:
    """The Python blocks of a page."""
    return re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)


_GIVEN = {"gateway", "source", "secret"}
"""What a page may speak of without having made it: its text says what that is."""


def test_what_the_pages_show_says_where_its_names_come_from() -> None:
    """Whoever copies a block must not have to look for its imports."""
    unknown = [
        f"{page.name}: {name}"
        for page in sorted((ROOT / "docs").glob("*.md"))
        for block in re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
        for name in sorted(_unknown(block) - _GIVEN - {*dir(gateway)})
    ]

    assert [] == unknown


def _unknown(block: str) -> set[str]:
    """The names that a program reads and neither imports nor makes."""
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT | ast.PyCF_ONLY_AST
    read: set[str] = set()
    made = set(vars(builtins))
    for node in ast.walk(compile(block, "block", "exec", flags)):
        if isinstance(node, ast.Name):
            (read if isinstance(node.ctx, ast.Load) else made).add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            made.add(node.name)
        elif isinstance(node, ast.arg):
            made.add(node.arg)
        elif isinstance(node, ast.Import):
            made |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names, module = {alias.name for alias in node.names}, node.module or ""
            ours = module.startswith("gateway") and not module.startswith("gateway.adapters.")
            lacking = names - set(dir(import_module(module))) if ours else set()
            made |= names - lacking
            read |= lacking
    return read - made


def _invoice(request: ModelRequest) -> Turn:
    return script(
        Turn(calls=(Call("search_tools", {"query": "find the invoices of ACME"}),)),
        Turn(calls=(Call("find_invoice", {"customer": "ACME"}),)),
        lambda later: Turn(text=f"It says {later.last_tool_results()[0]['content']}"),
    )(request)


def test_the_first_example_of_the_readme_is_short() -> None:
    """Whoever has ten minutes reads it whole."""
    code = [line for line in examples()[0].splitlines() if line]

    assert 20 > len(code)


def test_the_first_example_of_the_readme_runs(tmp_path: Path) -> None:
    """What a user copies works: real client, real catalog, real server, scripted model."""
    with ScriptedModel(_invoice, model="gpt-5.4-mini") as model:
        out = _run(examples()[0], tmp_path, OPENAI_BASE_URL=model.base_url, OPENAI_API_KEY="none")

    assert "12.50 EUR" in out
    assert 3 == out.count("TokenUsage(input=")


def test_the_example_without_a_framework_runs(tmp_path: Path) -> None:
    """The default strategy needs no model, no key and no extra."""
    assert "20.0 USD in EUR\n" == _run(examples("docs/adapters.md")[-1], tmp_path)


def _run(program: str, folder: Path, **variables: str) -> str:
    path = folder / "example.py"
    path.write_text(program, encoding="utf-8")
    bin_folder = str(Path(sys.executable).parent)
    environment = {
        **os.environ,
        "GATEWAY_CACHE_DIR": str(folder / "cache"),
        "PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        **variables,
    }
    done = subprocess.run(
        [sys.executable, str(path)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert 0 == done.returncode, done.stderr
    return done.stdout
