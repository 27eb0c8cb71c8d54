"""Runs of the programs in examples/."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.apps.cli.running import child

EXAMPLES = Path(__file__).parents[3] / "examples"
_LAST_LINES = {
    "quickstart.py": "Invoice INV-2042 is still open: 480.50 EUR.",
    "async_search.py": "120",
    "own_embedder.py": "convert_currency, ranked by vector",
    "prerequisites.py": "call before: create_invoice, sign_in",
    "catalog.py": "{'provider': {'organization': 'Acme'}}",
    "policies.py": "bob local/show_repository ok",
    "provisioning.py": "planned: modelcontextprotocol/time 2026.10.19",
}


def test_every_program_in_examples_has_a_test() -> None:
    assert sorted(_LAST_LINES) == sorted(path.name for path in EXAMPLES.glob("*.py"))


@pytest.mark.parametrize("name", _LAST_LINES)
def test_program_in_examples_runs_to_its_end(name: str, tmp_path: Path) -> None:
    """The program writes nothing to the user's folders except the prepared model."""
    home, temporary = tmp_path / "home", tmp_path / "temporary"
    home.mkdir()
    temporary.mkdir()
    env = {"HOME": str(home), "TMPDIR": str(temporary)}

    ran = child("-W", "error", str(EXAMPLES / name), cwd=temporary, env=env)

    assert (0, "") == (ran.code, ran.err)
    assert ran.out.splitlines()[-1] == _LAST_LINES[name]
    assert [] == [path for path in home.rglob("*") if path.is_file()]
