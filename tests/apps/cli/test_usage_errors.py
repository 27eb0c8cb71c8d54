"""Usage errors of all commands, as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import pytest
from typer.main import get_command

from gateway.cli import USAGE
from gateway.cli.app import COMMANDS, app, load_command
from tests.apps.cli.running import Place, Ran

VALUES: Mapping[str, str] = {"client": "cursor", "kind": "tool", "requests_file": "asked.md"}
"""Values of arguments that do not accept any text."""
MORE: Mapping[str, tuple[str, ...]] = {
    "catalog export": ("--servers",),
    "graph accept": ("--graph", "graph"),
    "graph reject": ("--graph", "graph"),
    "graph propose": ("--model", "m"),
    "import": ("--from", "theirs.json"),
    "servers add": ("--url", "https://h"),
}
"""Additional arguments that a command requires before it reads the configuration, keyed by
command."""


def commands(group: object, *path: str) -> Iterator[tuple[tuple[str, ...], object]]:
    """Yield every command and group below *group*, each with its path of names."""
    yield path, group
    for name, item in getattr(group, "commands", {}).items():
        yield from commands(item, *path, name)


ROOT = get_command(app)
EVERY: dict[tuple[str, ...], Any] = {(): ROOT}
for name in COMMANDS:
    EVERY.update(commands(load_command(name), name))
LEAVES = {path: each for path, each in EVERY.items() if path and not hasattr(each, "commands")}


def needed(command: object) -> list[Any]:
    """Return the required arguments of a command."""
    result = getattr(command, "params", ())
    return [item for item in result if item.param_type_name == "argument" and item.required]


def takes(command: object, option: str) -> bool:
    return any(option in item.opts for item in getattr(command, "params", ()))


named = partial(pytest.mark.parametrize, "path", ids=" ".join)
NEEDY = [path for path, each in LEAVES.items() if needed(each)]
CONFIGURED = [
    path for path, each in LEAVES.items() if takes(each, "--config") and takes(each, "--json")
]


@pytest.fixture
def run_wrong_command(capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Function that runs a command line that ends with a usage error, on one shared app."""

    def run(*arguments: str) -> Ran:
        with pytest.raises(SystemExit) as ended:
            ROOT.main(arguments, "gateway")
        out, err = capsys.readouterr()
        return Ran(code=int(str(ended.value.code)), out=out, err=err)

    return run


def error_of(ran: Ran) -> Mapping[str, str]:
    """Return the error that a command printed as JSON, after checks of exit code and standard
    error.
    """
    error: Mapping[str, str] = ran.json["error"]

    assert (USAGE, {"error"}) == (ran.code, set(ran.json))
    assert ran.err.strip()
    return error


@pytest.mark.parametrize("name", COMMANDS)
def test_list_of_commands_shows_the_help_of_each_command(name: str) -> None:
    """The list is printed without importing the commands, so it has copies of their help."""
    text = str(EVERY[name,].help)

    assert " ".join(text.partition("\n\n")[0].split()) == COMMANDS[name]


@named(list(EVERY))
def test_every_command_reports_an_unknown_option(
    run_wrong_command: Callable[..., Ran], path: tuple[str, ...]
) -> None:
    """`serve` and `graph export` have no option --json, so --json is the unknown option there."""
    error = error_of(run_wrong_command(*path, "--json", "--no-such-option"))

    assert ["type", "message", "hint"] == list(error)
    assert "UsageError" == error["type"]
    assert error["message"].startswith("No such option: --")
    assert f"see {' '.join(('gateway', *path))} --help" == error["hint"]


@named(NEEDY)
def test_every_command_reports_a_missing_argument(
    run_wrong_command: Callable[..., Ran], path: tuple[str, ...]
) -> None:
    error = error_of(run_wrong_command(*path, "--json"))

    first = needed(LEAVES[path])[0]
    assert error["message"].startswith(f"Missing argument '{first.metavar or first.name}'.")


@named(CONFIGURED)
def test_every_command_reports_a_broken_configuration(place: Place, path: tuple[str, ...]) -> None:
    broken = place.put("broken.json", '{"mcpServers": [')
    place.put("theirs.json", {"mcpServers": {"a": {"command": "a"}}})
    place.put("x", "---\nname: a\n---\n")
    place.put("asked.md", "| what is asked | a |")
    values = [VALUES.get(item.name, "x") for item in needed(LEAVES[path])]

    ran = place.at_home(*path, *values, *MORE.get(" ".join(path), ()), "--json", "-c", str(broken))

    output = (
        next(item["detail"] for item in ran.json["checks"] if item["verdict"] == "fail")
        if (path == ("doctor",))
        else error_of(ran)["message"]
    )
    assert "broken.json' is not JSON: line 1, column 17" in output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("search", "x", "--limit", "0"), "'--limit'"),
        (("search", "x", "--strategy", "magic"), "'magic'"),
        (("index", "burn"), "'burn'"),
        (("index", "show", "--rebuild"), "--rebuild works with build"),
        (("import", "nobody"), "'nobody'"),
        (("call", "a", "{}", "more"), "more"),
        (("fly",), "fly"),
        (("graph", "shw"), "'show'"),
    ],
)
def test_invalid_value_of_an_option_is_reported(
    run_wrong_command: Callable[..., Ran], arguments: tuple[str, ...], message: str
) -> None:
    assert message in error_of(run_wrong_command(*arguments, "--json"))["message"]


def test_arguments_after_two_dashes_are_not_options(run_wrong_command: Callable[..., Ran]) -> None:
    """The arguments belong to the program of the added server."""
    assert "" == run_wrong_command("servers", "add", "--", "--json").out
