"""Version, help and streams of the command line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

from gateway.cli import EXIT_CODES, INTERRUPTED, OK, main
from gateway.runtime import VERSION
from tests.apps.cli.running import Place, child

_LOADED = """
import sys
from gateway.cli import main
try:
    main()
finally:
    print([name for name in ("openai", "mcp", "rdflib", "numpy") if name in sys.modules])
"""


def test_version_option_imports_no_heavy_module(tmp_path: Path) -> None:
    ran = child("-c", _LOADED, "--version", cwd=tmp_path, env={})

    assert (OK, f"tool-gateway {VERSION}\n[]\n") == (ran.code, ran.out)


def test_help_option_imports_no_heavy_module(tmp_path: Path) -> None:
    ran = child("-c", _LOADED, "--help", cwd=tmp_path, env={})

    assert (OK, True) == (ran.code, ran.out.endswith("\n[]\n"))


@pytest.mark.parametrize(
    "command",
    [
        (),
        *((name,) for name in ("search", "call", "index", "demo", "graph")),
        *(("graph", name) for name in ("show", "export", "derive", "validate", "query")),
    ],
)
def test_help_shows_every_exit_code(place: Place, command: tuple[str, ...]) -> None:
    output = " ".join(place.run(*command, "--help").out.split())

    assert [code for code, meaning in EXIT_CODES.items() if f"{code} {meaning}" not in output] == []


def test_main_prints_to_streams_that_cannot_be_reconfigured() -> None:
    """Hosts that call `main` may replace the standard streams."""
    caught = StringIO()

    with redirect_stdout(caught), pytest.raises(SystemExit):
        main(["--version"])

    assert f"tool-gateway {VERSION}\n" == caught.getvalue()


class _Interrupted(list[str]):
    """Arguments whose reading is interrupted like by Ctrl-C."""

    def __iter__(self) -> Iterator[str]:
        raise KeyboardInterrupt


def test_interrupt_while_arguments_are_parsed_shows_no_traceback() -> None:
    with pytest.raises(SystemExit) as ended:
        main(_Interrupted(["--version"]))

    assert INTERRUPTED == ended.value.code
