"""Copies of the package without plugins, or without one of them."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PLUGINS = sorted(folder.parent.name for folder in ROOT.glob("gateway/plugins/*/__init__.py"))
PROGRAM = next(
    text
    for text in re.findall(
        r"```python\n(.*?)```", (ROOT / "docs" / "adapters.md").read_text("utf-8"), re.DOTALL
    )
    if "asyncio.run(main())" in text
)
"""Program in docs/adapters.md that needs neither a key nor a model."""
HTTP_PROGRAM = """
from gateway import Gateway
from gateway.serve.api.app import api_routes
from gateway.serve.console.app import PLACES
from gateway.serve.http_options import HttpOptions

print(*(place.path for place in PLACES))
gateway = Gateway()
paths = [route.path for route in api_routes(gateway, HttpOptions())]
print("audit" if "/api/audit" in paths else "no audit")
gateway.close()
"""
RANKED_PROGRAM = """
from gateway import Gateway, SyncGateway
from gateway.serve.api.search_routes import default_ranking

gateway = Gateway()
print(default_ranking("rrf", gateway))
for use in (
    lambda: SyncGateway(gateway).search("mail", ranking="hybrid"),
    lambda: default_ranking("legacy", gateway),
):
    try:
        use()
    except Exception as error:
        print(type(error).__name__, error)
gateway.close()
"""
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}


def copy_without(folder: Path, names: Sequence[str]) -> Path:
    """Copy this package into *folder* without the plugins *names*, and return the path of the
    copy.
    """
    for package in ("gateway", "graphs"):
        # Compiled files are copied too. Those of deleted modules are not imported.
        shutil.copytree(ROOT / package, folder / package)
    for name in names:
        shutil.rmtree(folder / "gateway" / "plugins" / name)
    (folder / "mcp.json").write_text('{"mcpServers": {}}', encoding="utf-8")
    return folder


def environment_of(copy: Path) -> dict[str, str]:
    """Return environment variables for a process that imports the copy."""
    # All processes share the files that the first one compiles.
    variables = {"PYTHONPATH": str(copy), "GATEWAY_CACHE_DIR": str(copy / "cache")}
    inherited = {
        name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
    }
    return inherited | variables


def run(copy: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python with *arguments* on the copy."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=copy,
        env=environment_of(copy),
        capture_output=True,
        text=True,
        check=False,
    )


def check_program(copy: Path) -> None:
    completed = run(copy, "-c", f"{PROGRAM}\nimport gateway\nprint(gateway.__file__)")
    assert completed.returncode == 0, completed.stderr
    assert completed.stdout.splitlines() == [
        "20.0 USD in EUR",
        str(copy / "gateway" / "__init__.py"),
    ]


def check_search(copy: Path) -> None:
    completed = run(copy, "-m", "gateway", "search", "an e-mail", "--json", "--strategy", "graph")
    assert completed.returncode == 1, completed.stderr
    assert json.loads(completed.stdout)["result"]["matches"] == []


def check_serve(copy: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "gateway", "serve"],
        cwd=copy,
        env=environment_of(copy),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin
        assert process.stdout
        process.stdin.write(json.dumps(INITIALIZE) + "\n")
        process.stdin.flush()
        answer = json.loads(process.stdout.readline())
        assert answer["result"]["serverInfo"]["name"]


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy without any plugin."""
    return copy_without(tmp_path_factory.mktemp("bare"), PLUGINS)


def test_core_works_without_any_plugin(bare: Path) -> None:
    check_program(bare)
    check_search(bare)
    check_serve(bare)
    listing = run(bare, "-m", "gateway", "--help")
    assert "search" in listing.stdout


@pytest.mark.parametrize("name", PLUGINS)
def test_gateway_works_without_each_single_plugin(tmp_path: Path, name: str) -> None:
    copy = copy_without(tmp_path, [name])
    check_program(copy)
    check_search(copy)
    check_serve(copy)


def test_call_log_is_shown_without_graph_tools(tmp_path: Path) -> None:
    completed = run(
        copy_without(tmp_path, ["graph_tools"]), "-m", "gateway", "usage", "show", "--json"
    )

    assert completed.returncode == 1, completed.stderr
    assert json.loads(completed.stdout)["tools"] == []


def test_search_ranks_by_words_without_rankings(tmp_path: Path) -> None:
    copy = copy_without(tmp_path, ["rankings"])

    completed = run(
        copy, "-m", "gateway", "search", "mail", "--kind", "server", "--strategy", "graph", "--json"
    )
    ranked = run(copy, "-c", RANKED_PROGRAM)

    assert completed.returncode == 1, completed.stderr
    assert json.loads(completed.stdout)["result"]["matches"] == []
    default, search, fusion = ranked.stdout.splitlines()
    need = "needs the plugin 'rankings', which is not loaded"
    assert default == "lexical"
    assert search.startswith(f"InvalidRequestError ranking 'hybrid' {need}")
    assert fusion.startswith(f"ConfigError SEARCH_FUSION_METHOD=legacy {need}")


def test_http_server_works_without_any_plugin(bare: Path) -> None:
    completed = run(bare, "-c", HTTP_PROGRAM)
    assert completed.returncode == 0, completed.stderr
    assert completed.stdout.split() == ["/ask", "/attention", "/activity", "no", "audit"]


def test_error_names_the_missing_plugin(bare: Path) -> None:
    command = run(bare, "-m", "gateway", "eval", "run", "--json")
    assert command.returncode == 2
    message = json.loads(command.stdout)["error"]["message"]
    assert message.startswith("gateway eval needs the plugin 'quality', which is not installed")
    option = run(bare, "-m", "gateway", "serve", "--with", "discover")
    assert option.returncode == 2
    assert "needs the plugin 'provision', which is not installed" in option.stderr
    chosen = run(
        bare, "-c", "import gateway\ngateway.Gateway(options=gateway.Options(plugins=('usage',)))"
    )
    assert "ConfigError: the plugins usage are not installed" in chosen.stderr
