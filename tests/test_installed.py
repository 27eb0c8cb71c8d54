"""Lookup of programs for tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.installed import installed


@pytest.mark.parametrize("environ", [{}, {"CI": ""}])
def test_missing_program_skips_the_test_with_the_command_that_installs_it(
    environ: dict[str, str],
) -> None:
    with pytest.raises(pytest.skip.Exception, match="apt-get install prometheus"):
        installed("no-such-program", package="prometheus", environ=environ)


@pytest.mark.parametrize("value", ["1", "true"])
def test_missing_program_fails_the_test_in_ci(value: str) -> None:
    with pytest.raises(pytest.fail.Exception, match="apt-get install prometheus"):
        installed("no-such-program", package="prometheus", environ={"CI": value})


def test_installed_program_is_found() -> None:
    assert Path(installed("sh", package="dash")).is_file()


def test_ci_does_not_skip_tests_of_missing_programs() -> None:
    gate = Path(__file__).parents[1] / ".ci" / "run"

    assert "\nexport CI=" in gate.read_text("utf-8")
