"""Imports of adapters, and messages about missing frameworks."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

from gateway.errors import MissingExtraError
from tests.apps.adapters.frameworks import FRAMEWORKS
from tests.apps.cli.running import child

ROOT = Path(__file__).parents[3]


def test_importing_the_adapters_package_imports_no_framework() -> None:
    """Users of one framework have not installed the others."""
    script = (
        f"import sys, gateway.adapters\n"
        f"assert not {set(FRAMEWORKS.values())!r} & set(sys.modules), 'loaded'"
    )
    subprocess.run([sys.executable, "-c", script], check=True, cwd=ROOT)


@pytest.mark.parametrize("adapter", FRAMEWORKS)
def test_adapter_names_the_extra_of_a_missing_framework(adapter: str) -> None:
    if find_spec(FRAMEWORKS[adapter]) is not None:
        assert import_module(f"gateway.adapters.{adapter}").__doc__
        return
    extra = adapter.replace("_", "-")

    with pytest.raises(MissingExtraError, match=re.escape(f'"tool-gateway[{extra}]"')):
        import_module(f"gateway.adapters.{adapter}")


def test_every_framework_has_an_extra_an_adapter_a_test_and_an_example() -> None:
    gate = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    document = (ROOT / "docs" / "adapters.md").read_text(encoding="utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = project["project"]["optional-dependencies"]

    for adapter in FRAMEWORKS:
        extra = adapter.replace("_", "-")
        assert extra in extras
        assert re.search(rf"[ :]{extra}[ :]", gate)
        assert f".[{extra}]" in document
        assert (ROOT / "gateway" / "adapters" / f"{adapter}.py").is_file()
        assert (ROOT / "tests" / "apps" / "adapters" / f"test_{adapter}.py").is_file()
        assert (ROOT / "examples" / "adapters" / f"{adapter}_agent.py").is_file()


EXAMPLES = {
    "anthropic_blocks": '"tool_name": "find_invoice"',
    **{f"{name}_agent": "Invoice INV-2042 is still open: 480.50 EUR." for name in FRAMEWORKS},
}
"""Last line that each example program of an adapter prints, keyed by name of the program."""


@pytest.mark.parametrize("example", EXAMPLES)
def test_example_of_an_adapter_runs(tmp_path: Path, example: str) -> None:
    framework = FRAMEWORKS.get(example.removesuffix("_agent"))
    if framework and find_spec(framework) is None:
        pytest.skip(f"{framework} is not installed")
    env = {"GATEWAY_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    program = ROOT / "examples" / "adapters" / f"{example}.py"
    ran = child(str(program), cwd=tmp_path, env=env)

    assert 0 == ran.code, ran.err
    assert EXAMPLES[example] in ran.out.splitlines()[-1]
