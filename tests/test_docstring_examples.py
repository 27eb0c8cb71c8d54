"""Examples in docstrings, written as in the interactive shell of ``python -m asyncio``."""

from __future__ import annotations

import ast
import asyncio
import doctest
import inspect
import io
from collections.abc import Iterator
from contextlib import redirect_stdout
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from gateway import Gateway

ROOT = Path(__file__).parents[1]
ENTRY_POINTS = (
    "gateway.call.calls.Calls.invoke",
    "gateway.call.hooks.CallHook",
    "gateway.catalog.catalog.Catalog",
    "gateway.chat.client.AsyncAutoDiscoveryClient",
    "gateway.chat.client.AutoDiscoveryClient",
    "gateway.chat.client.Middleware",
    "gateway.embed.openai.OpenAIEmbedder",
    "gateway.embed.protocol.Embedder",
    "gateway.gateway.Gateway",
    "gateway.gateway.Gateway.add_server",
    "gateway.gateway.Gateway.search",
    "gateway.hookspecs",
    "gateway.mcp.servers.HttpServer",
    "gateway.mcp.servers.OAuth",
    "gateway.mcp.servers.StdioServer",
    "gateway.options.Options",
    "gateway.options.policies.AccessPolicy",
    "gateway.plugins.local.embedder.LocalEmbedder",
    "gateway.plugins.quality.metrics.score",
    "gateway.plugins.quality.requests.parse",
    "gateway.search.openai.OpenAINormalizer",
    "gateway.search.signals.signal.Signal",
    "gateway.sources.transforms.TransformedSource",
    "gateway.sources.virtual.Alias",
    "gateway.sources.virtual.VirtualServer",
    "gateway.storage.protocol.SqliteStore",
    "gateway.sync.SyncGateway",
    "gateway.types.caller.Caller",
    "gateway.types.entities.Filters",
    "gateway.types.entities.Hints",
    "gateway.types.search.SearchResult",
    "graphs.expansion.expand",
    "graphs.graph_builder.compile_facts",
    "graphs.markdown.dialect.parse",
    "graphs.rdf.sparql.query_sparql",
    "graphs.text_search.search_text",
)
"""Names whose docstrings must have an example."""


def docstrings() -> Iterator[tuple[str, str]]:
    """Yield the dotted name of an object and its docstring, for each docstring with an
    example.
    """
    for path in sorted([*(ROOT / "gateway").rglob("*.py"), *(ROOT / "graphs").rglob("*.py")]):
        parts = path.relative_to(ROOT).with_suffix("").parts
        source = path.read_text(encoding="utf-8")
        if ">>> " in source:
            yield from _docstrings(ast.parse(source), ".".join(parts).removesuffix(".__init__"))


def _docstrings(node: ast.AST, name: str) -> Iterator[tuple[str, str]]:
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    if isinstance(node, documented):
        text = ast.get_docstring(node) or ""
        if ">>> " in text:
            yield name, text
        for child in node.body:
            yield from _docstrings(child, f"{name}.{getattr(child, 'name', '')}")


EXAMPLES = dict(docstrings())


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@pytest.mark.parametrize("name", EXAMPLES)
def test_docstring_example_prints_the_documented_output(name: str) -> None:
    with asyncio.Runner() as runner:
        core = Gateway(strategy="graph")
        core.add_tool(add)
        names = {**vars(import_module(_module_of(name))), "gateway": core}
        try:
            for example in doctest.DocTestParser().get_examples(EXAMPLES[name], name):
                assert example.want == _output(runner, example.source, names), example.source
        finally:
            core.close()


def _module_of(name: str) -> str:
    while not (ROOT / f"{name.replace('.', '/')}.py").is_file():
        if (ROOT / name.replace(".", "/") / "__init__.py").is_file():
            break
        name = name.rpartition(".")[0]
    return name


def _output(runner: asyncio.Runner, source: str, names: dict[str, Any]) -> str:
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    with redirect_stdout(io.StringIO()) as stdout:
        result = eval(compile(source, "<example>", "single", flags), names)  # noqa: S307  (our own docstrings)
        if inspect.iscoroutine(result):
            runner.run(result)
    return stdout.getvalue()


def test_entry_points_have_an_example() -> None:
    assert set() == set(ENTRY_POINTS) - EXAMPLES.keys()
