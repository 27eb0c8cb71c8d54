"""The front door: what `gateway` offers, and what it costs."""

from __future__ import annotations

import ast
import builtins
import inspect
import subprocess
import sys
import typing
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import gateway

ROOT = Path(__file__).parents[1]


def test_public_names_are_sorted_and_load() -> None:
    """Whoever reads the list finds a name, and whoever uses one gets it."""
    assert sorted(gateway.__all__) == gateway.__all__
    for name in gateway.__all__:
        value = getattr(gateway, name)
        ours = str(getattr(value, "__module__", "")).startswith("gateway")
        assert not ours or name == value.__name__


def test_the_stub_says_what_the_package_does() -> None:
    """Type checkers read `__init__.pyi`, Python reads `__init__.py`: they must not differ."""
    stub = ast.parse((ROOT / "gateway" / "__init__.pyi").read_text(encoding="utf-8"))
    told = {
        alias.asname: node.module
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }

    listed = next(node.value for node in stub.body if isinstance(node, ast.Assign))

    assert gateway.__all__ == ast.literal_eval(listed)
    assert set(gateway.__all__) == set(told)
    for name, module in told.items():
        assert module is not None
        assert getattr(import_module(module), str(name)) is getattr(gateway, str(name))


INTERNAL = {
    "gateway.catalog.ahead": {"Recorded"},
    "gateway.catalog.entries": {"View"},
    "gateway.catalog.ledger": {"Call", "Seen", "Tally", "Task"},
    "gateway.catalog.records": {"Recorded"},
    "gateway.chat.prepared": {"Bridge", "Loop", "Plain", "ToolCall"},
    "gateway.options.chat": {"Confirm"},
    "gateway.options.discovery": {"Mode"},
    "gateway.options.search": {"First", "Learn", "Prerequisites", "Rerank"},
    "gateway.options.upstream": {"Lifecycle", "Policy"},
    "gateway.embed.local": {"Gathering", "Model"},
    "gateway.gateway": {"Bridge", "MeterProvider", "TracerProvider"},
    "gateway.provision.consent": {"Stage"},
    "gateway.provision.gates": {"Verdict"},
    "gateway.provision.plan": {"Commands", "Entry", "Needs", "Package", "Remote"},
    "gateway.provision.provisioner": {"Outcome", "Programs", "Told"},
    "gateway.provision.rank": {"Entry"},
    "gateway.registration": {"Sources", "State"},
    "gateway.search.index.snapshot": {
        "Doubts",
        "Eligibility",
        "Mask",
        "Mates",
        "Named",
        "Names",
        "ToolGraph",
        "VectorIndex",
        "Yardstick",
    },
    "gateway.search.library": {"Audience", "WatchCallbacks", "Registry"},
    "gateway.search.remembered": {"Cache", "Told"},
    "gateway.upstream.oauth": {"Consent", "Where"},
}
"""By the module that says it, what stands in a public signature and has no name at the door: what
the house alone makes, words that are written as strings, and what the author of a store imports
from `gateway.catalog`."""


def test_what_a_public_signature_says_is_public() -> None:
    """Whoever wraps one of ours writes its types, and takes them from the same door."""
    public = {id(getattr(gateway, name)) for name in gateway.__all__}
    lacking: dict[str, set[str]] = {}
    for name in gateway.__all__:
        for module, said in annotated(getattr(gateway, name)):
            value = vars(sys.modules[module]).get(said)
            late = value is None and said in gateway.__all__
            if id(value) not in public and not late and not outside(said, value):
                lacking.setdefault(module, set()).add(said)

    assert lacking == INTERNAL


def outside(name: str, value: object) -> bool:
    """Whether it is Python's, or a class of another library, or a module."""
    if isinstance(value, type):
        return not value.__module__.startswith("gateway")
    return isinstance(value, ModuleType) or name in {*dir(builtins), *dir(typing)}


def annotated(of: Callable[..., object]) -> Iterator[tuple[str, str]]:
    """The names in the annotations of a public function, or of a class: its constructor, its
    attributes and its public methods, each with the module that says it.
    """
    for owner in of.__mro__ if isinstance(of, type) else (of,):
        module = str(getattr(owner, "__module__", ""))
        if not module.startswith("gateway"):
            continue
        told = [inspect.get_annotations(each) for each in (owner, *methods(owner))]
        for annotation in (each for one in told for name, each in one.items() if name[0] != "_"):
            for node in ast.walk(ast.parse(str(annotation))):
                if isinstance(node, ast.Name):
                    yield module, node.id


def methods(of: object) -> Iterator[Callable[..., object]]:
    """The functions behind the constructor, the public methods and the properties of a class."""
    for name, member in vars(of).items() if isinstance(of, type) else ():
        bare = getattr(member, "__func__", None) or getattr(member, "fget", None) or member
        if inspect.isfunction(bare) and (name == "__init__" or name[0] != "_"):
            yield inspect.unwrap(bare)


def test_an_unknown_name_is_an_attribute_error() -> None:
    """As with any other module."""
    with pytest.raises(AttributeError, match="no attribute 'Toolbox'"):
        _ = gateway.Toolbox  # type: ignore[attr-defined]  # (the point of the test)


def test_the_door_costs_no_heavy_library() -> None:
    """A warm start must not pay for openai, the MCP SDK or rdflib before it needs them."""
    program = (
        "import sys, gateway; gateway.Gateway; gateway.SyncGateway; gateway.SqliteVectorStore; "
        "print([name for name in ('openai', 'mcp', 'rdflib') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT
    )

    assert "[]\n" == done.stdout


def test_the_catalog_is_one_thing() -> None:
    """Whoever reads of `Catalog` in the code must find what `gateway.Catalog` is."""
    named = [
        str(path.relative_to(ROOT))
        for path in sorted((ROOT / "gateway").rglob("*.py"))
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef) and node.name == "Catalog"
    ]

    assert ["gateway/catalog/entries.py"] == named
