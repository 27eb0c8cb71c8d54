"""Comparison of the documentation with the code."""

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
    """Return the table rows of a page, keyed by the first cell without backticks."""
    lines = (ROOT / "docs" / name).read_text(encoding="utf-8").splitlines()
    cells = (line.split("|", 2) for line in lines if line.startswith("| `"))
    return {first.strip().strip("`"): text for _, first, text in cells}


def _default(field: dataclasses.Field[object]) -> object:
    if field.default_factory is dataclasses.MISSING:
        return field.default
    return f"{type(field.default_factory()).__name__}()"


def test_every_option_and_its_default_are_documented() -> None:
    expected = {
        f"{owner.__name__}.{field.name}": repr(_default(field)).strip("'")
        for owner in OPTION_CLASSES
        for field in dataclasses.fields(owner)
    }

    documented = {
        name: text.split("|")[0].strip().strip("`").strip("'\"")
        for name, text in rows("options.md").items()
        if "Options." in name or name.startswith("CustomKind.")
    }
    assert expected == documented


def test_every_hook_and_every_plugin_is_documented() -> None:
    hooks = {name for name in vars(hookspecs) if name.startswith("register_")}
    documented = {name.partition("(")[0] for name in rows("plugins.md")}

    assert {*hooks, *DEFAULT_PLUGINS} == documented


def test_every_diagnostic_code_is_documented_with_its_meaning() -> None:
    documented = rows("diagnostics.md")
    expected = {
        code: f" {meaning} | {'yes' if code in types.DEGRADING else 'no'} |"
        for code, meaning in types.CODES.items()
    }

    assert expected == {code: text for code, text in documented.items() if code.islower()}


def test_every_diagnostic_code_has_a_meaning_and_is_used() -> None:
    home = ROOT / "gateway" / "types" / "diagnostics.py"
    used = {
        node.value
        for path in (ROOT / "gateway").rglob("*.py")
        if path != home
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }

    assert get_args(types.Code) == tuple(types.CODES)
    assert set() == set(types.CODES) - used


def test_every_error_is_documented() -> None:
    classes = (value for value in vars(errors).values() if isinstance(value, type))
    names = {value.__name__ for value in classes if issubclass(value, errors.GatewayError)}

    assert names - {"GatewayError"} <= set(rows("diagnostics.md"))


@pytest.mark.requirement("auto:rule-10")
def test_metrics_match_their_documentation() -> None:
    expected = {
        name: [metric.kind, f"`{metric.unit}`", metric.description]
        for name, metric in METRICS.items()
    }

    rows_of = {name: row.cells for name, row in documented().items() if len(row.cells) == 3}
    assert expected == rows_of


def test_glossary_lists_each_word_once_in_alphabetical_order() -> None:
    lines = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8").splitlines()
    words = [
        line.split("|")[1].strip().strip("`").casefold()
        for line in lines
        if line.startswith("| ") and not line.startswith(("| word |", "| --- |"))
    ]

    assert len(words) > 30
    assert sorted({*words}) == words


def _prose(document: Path) -> str:
    """Return the text of a page without its code."""
    text = document.read_text(encoding="utf-8")
    return re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)


def test_links_between_pages_have_targets() -> None:
    documents = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    broken = [
        f"{document.name}: {target}"
        for document in documents
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", _prose(document))
        if not (document.parent / target).exists()
    ]

    assert [] == broken


def test_contributing_guide_names_existing_files() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    paths = re.findall(r"`((?:gateway|tests|docs|examples)/[^`]*|\.ci/run)`", text)
    missing = [path for path in paths if not any(ROOT.glob(path))]

    assert len(paths) > 30
    assert [] == missing


@pytest.mark.parametrize("entrance", ["README.md", "docs/README.md"])
def test_readmes_link_every_page(entrance: str) -> None:
    start = ROOT / entrance
    links = re.findall(r"\]\(([^)#:]+\.md)", start.read_text(encoding="utf-8"))
    linked = {(start.parent / link).resolve() for link in links}

    assert set() == {*(ROOT / "docs").glob("*.md")} - linked - {start}


def _decisions() -> list[Path]:
    """Return the pages of the decisions (ADRs), without their index."""
    return sorted((ROOT / "docs" / "adr").glob("[0-9]*.md"))


def test_index_of_decisions_lists_the_title_of_each_decision() -> None:
    index = (ROOT / "docs" / "adr" / "README.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| (\d+) \| \[(.+)\]\((.+)\) \|", index, re.MULTILINE)
    titles = (page.read_text(encoding="utf-8").splitlines()[0] for page in _decisions())
    expected = [
        (*title.removeprefix("# ").split(". ", 1), page.name)
        for title, page in zip(titles, _decisions(), strict=True)
    ]

    assert expected == listed


def test_decisions_have_the_required_sections() -> None:
    headings = ["Status", "Context", "Decision", "Rejected", "Consequences", "Confirmation"]
    for page in _decisions():
        text = page.read_text(encoding="utf-8")

        assert headings == re.findall(r"^## (\w+)", text, re.MULTILINE), page.name
        assert len(text.splitlines()) <= 80, page.name


def examples(page: str = "README.md") -> list[str]:
    """Return the Python blocks of a page."""
    return re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)


_INTRODUCED = {"gateway", "source", "secret"}
"""Names that the examples of a page may use without defining them, because its text introduces
them."""


def test_examples_define_their_names() -> None:
    """Readers must be able to run a copied block."""
    unknown = [
        f"{page.name}: {name}"
        for page in sorted((ROOT / "docs").glob("*.md"))
        for block in re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
        for name in sorted(_unknown(block) - _INTRODUCED - {*dir(gateway)})
    ]

    assert [] == unknown


def _unknown(block: str) -> set[str]:
    """Return the names that a program reads but neither imports nor defines."""
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT | ast.PyCF_ONLY_AST
    read: set[str] = set()
    defined = set(vars(builtins))
    for node in ast.walk(compile(block, "block", "exec", flags)):
        if isinstance(node, ast.Name):
            (read if isinstance(node.ctx, ast.Load) else defined).add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            defined.add(node.name)
        elif isinstance(node, ast.arg):
            defined.add(node.arg)
        elif isinstance(node, ast.Import):
            defined |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names, module = {alias.name for alias in node.names}, node.module or ""
            ours = module.startswith("gateway") and not module.startswith("gateway.adapters.")
            lacking = names - set(dir(import_module(module))) if ours else set()
            defined |= names - lacking
            read |= lacking
    return read - defined


def _invoice(request: ModelRequest) -> Turn:
    return script(
        Turn(calls=(Call("search_tools", {"query": "find the invoices of ACME"}),)),
        Turn(calls=(Call("find_invoice", {"customer": "ACME"}),)),
        lambda later: Turn(text=f"It says {later.last_tool_results()[0]['content']}"),
    )(request)


def test_first_example_of_the_readme_is_short() -> None:
    code = [line for line in examples()[0].splitlines() if line]

    assert 20 > len(code)


def test_first_example_of_the_readme_runs(tmp_path: Path) -> None:
    with ScriptedModel(_invoice, model="gpt-5.4-mini") as model:
        out = _run(examples()[0], tmp_path, OPENAI_BASE_URL=model.base_url, OPENAI_API_KEY="none")

    assert "12.50 EUR" in out
    assert 3 == out.count("TokenUsage(input=")


def test_example_without_a_framework_runs(tmp_path: Path) -> None:
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
    completed = subprocess.run(
        [sys.executable, str(path)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert 0 == completed.returncode, completed.stderr
    return completed.stdout
