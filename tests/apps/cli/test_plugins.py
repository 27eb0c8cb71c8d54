"""`gateway plugins`, and commands of plugins."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.cli import OK, UNAVAILABLE, USAGE
from gateway.cli.session import open_session
from tests.apps.cli.running import Place
from tests.conftest import InstallPlugin

GREETING = """
from gateway.hookspecs import PluginCommand, hookimpl

@hookimpl
def register_commands():
    return {"greet": PluginCommand(summary="Greet somebody.", module="greeting_command")}
"""
COMMAND = """
import typer

app = typer.Typer()

@app.command()
def greet(name: str) -> None:
    typer.echo(f"Hello, {name}!")
"""


def test_module_of_a_plugin_command_is_imported_only_when_the_command_runs(
    place: Place, install_plugin: InstallPlugin, tmp_path: Path
) -> None:
    install_plugin("greeting", GREETING)

    # The module does not exist yet, and listing the commands does not import it.
    output = place.run("--help")
    (tmp_path / "greeting_command.py").write_text(COMMAND, encoding="utf-8")
    ran = place.run("greet", "Ada")

    assert "Greet somebody." in output.out
    assert (OK, "Hello, Ada!\n") == (ran.code, ran.out)


def test_command_of_a_plugin_that_is_not_selected_is_unknown(
    place: Place, install_plugin: InstallPlugin
) -> None:
    install_plugin("greeting2", GREETING)

    ran = place.run("greet", "Ada", env={"GATEWAY_PLUGINS": "none"})

    assert (USAGE, True) == (ran.code, "No such command 'greet'" in ran.err)


def test_gateway_command_overrides_a_plugin_command_with_the_same_name(
    place: Place, install_plugin: InstallPlugin
) -> None:
    install_plugin("greeting3", GREETING.replace('"greet"', '"plugins"'))

    ran = place.run("plugins", "--json")

    assert "greeting3" in [plugin["name"] for plugin in ran.json["plugins"]]


def test_plugins_command_lists_plugins_with_hooks_and_load_errors(
    place: Place, install_plugin: InstallPlugin
) -> None:
    install_plugin("broken_list", "raise OSError('no such disk')")

    ran = place.run("plugins", "--json", env={"GATEWAY_PLUGINS": "local,broken_list"})
    broken, local = ran.json["plugins"]

    assert OK == ran.code
    assert ("broken_list", "gateway-broken_list", "1.2", [], "OSError: no such disk") == (
        *(broken[key] for key in ("name", "distribution", "version", "hooks", "error")),
    )
    assert ("local", ["register_embedders"], "") == (local["name"], local["hooks"], local["error"])


def test_doctor_reports_a_plugin_that_fails_to_load(
    place: Place, install_plugin: InstallPlugin
) -> None:
    install_plugin("broken_check", "raise OSError('no such disk')")

    ran = place.at_home("doctor", "--json")
    checks = {check["name"]: check for check in ran.json["checks"]}

    assert UNAVAILABLE == ran.code
    assert "ok" == checks["plugin local"]["verdict"]
    broken = checks["plugin broken_check"]
    assert ("fail", "OSError: no such disk") == (broken["verdict"], broken["detail"])
    assert "uninstall gateway-broken_check" in broken["remedy"]


@pytest.mark.parametrize("hook", ["register_commands", "register_embedders", "register_sources"])
def test_doctor_reports_two_plugins_that_use_the_same_name(
    place: Place, install_plugin: InstallPlugin, hook: str
) -> None:
    source = GREETING.replace("register_commands", hook)
    install_plugin(f"first_{hook}", source)
    install_plugin(f"second_{hook}", source)

    ran = place.at_home("doctor", "--json")
    checks = {check["name"]: check for check in ran.json["checks"]}

    assert UNAVAILABLE == ran.code
    assert f"two plugins give {hook} the name 'greet'" in checks["plugins"]["detail"]
    assert OK == place.run("--help").code


@pytest.mark.parametrize(
    ("section", "variable", "names"),
    [
        (["local"], "", ["local"]),
        ([], "", []),
        ("none", "", []),
        (["local"], "none", []),
        ("none", "local", ["local"]),
    ],
)
def test_environment_overrides_the_plugins_of_the_configuration(
    place: Place, section: object, variable: str, names: list[str]
) -> None:
    config = place.config({}, plugins=section)
    env = {"GATEWAY_PLUGINS": variable} if variable else {}

    ran = place.run("plugins", "-c", config, "--json", env=env)

    assert names == [plugin["name"] for plugin in ran.json["plugins"]]


def test_gateway_uses_the_plugins_of_the_configuration(place: Place) -> None:
    with open_session(Path(place.config({}, plugins=[])), strategy="graph") as session:
        assert session.gateway.gateway.plugins.infos == ()


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ("local", "'plugins' must be a list of names, or 'none'"),
        ([1], "'plugins' must be a list of names, or 'none'"),
        (["nonesuch"], "the plugins nonesuch are not installed"),
    ],
)
def test_configuration_with_an_invalid_plugins_section_is_refused(
    place: Place, section: object, message: str
) -> None:
    ran = place.run("plugins", "-c", place.config({}, plugins=section))

    assert (USAGE, True) == (ran.code, message in ran.err)
