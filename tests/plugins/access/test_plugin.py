"""Gateways with and without the plugin ``access``. Without it, options that need it are refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.catalog import Entry
from gateway.errors import ConfigError, UnknownToolError
from gateway.gateway import Gateway
from gateway.options import AccessPolicy, AuditOptions, Options
from gateway.plugins.access import AccessGate
from gateway.types import Caller
from tests.conftest import PATIENT, InstallPlugin, OpenGateway
from tests.core.test_plugin_manager import GUARDRAIL, VIEWS, check_guarded_calls
from tests.fakes import ListSource, tool

DENY = AccessPolicy(action="deny", tools=("*/burn_*",))
WITHOUT = replace(PATIENT, plugins=())


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return tmp_path / "mcp.json"


def write(config: Path, *policies: dict[str, object]) -> None:
    servers = {"shop": {"command": "no-such-command"}}
    config.write_text(json.dumps({"mcpServers": servers, "policies": policies}), "utf-8")


@pytest.mark.parametrize(
    "action",
    [{"action": "deny"}, {"action": "limit", "calls": 1}, {"action": "redact", "secrets": True}],
)
def test_policies_are_refused_without_the_plugin(action: dict[str, object]) -> None:
    policy = AccessPolicy(**action)  # type: ignore[arg-type]
    with pytest.raises(
        ConfigError, match=r"a policy needs the plugin 'access', .*: add it to Options\.plugins"
    ):
        Gateway(options=replace(WITHOUT, policies=(policy,)))


def test_audit_log_is_refused_without_the_plugin() -> None:
    with pytest.raises(ConfigError, match=r"audit\.record needs the plugin 'access', .*: add it"):
        Gateway(options=replace(WITHOUT, audit=AuditOptions(record="on")))


def test_set_policies_is_refused_without_the_plugin(open_gateway: OpenGateway) -> None:
    gateway = open_gateway(options=WITHOUT)
    gateway.set_policies([])
    for _ in range(2):
        with pytest.raises(ConfigError, match="a policy needs the plugin"):
            gateway.set_policies([DENY])


async def test_config_file_with_policies_is_refused_without_the_plugin(
    open_gateway: OpenGateway, config: Path
) -> None:
    gateway = open_gateway(options=WITHOUT)
    write(config, {"action": "deny", "tools": ["shop/*"]})
    for _ in range(2):
        with pytest.raises(ConfigError, match="a policy needs the plugin"):
            gateway.add_config(config)
    assert {} == gateway.server_states()

    write(config)
    gateway.add_config(config)
    write(config, {"action": "deny", "tools": ["shop/*"]})
    with pytest.raises(ConfigError, match="a policy needs the plugin"):
        await gateway.reload()


async def test_gateway_without_policies_behaves_the_same_without_the_plugin(
    open_gateway: OpenGateway, tmp_path: Path
) -> None:
    answers: list[object] = []
    for options in (PATIENT, WITHOUT):
        place = tmp_path / f"{len(answers)}.sqlite3"
        gateway = open_gateway(options=replace(options, catalog_store_path=place))
        gateway.add_source(ListSource("desk", [tool("read_letter"), tool("burn_letter")]))
        (key,) = await gateway.catalog.put(Entry(kind="skill", name="letters"))
        callers = [Caller(user=name, tenant="acme") for name in ("ada", "bob")]
        results = [await gateway.search("burn a letter", caller=caller) for caller in callers]
        result = await gateway.invoke("desk/burn_letter", {"text": "x"}, caller=callers[0])
        await gateway.catalog.change([key], {"status": "beta"})
        visible = [entity.id for entity in (await gateway.snapshot()).visible(callers[0].filters())]
        # Both users may see the same tools, so their equal searches share a cached result.
        assert results[0].matches == results[1].matches
        assert 1 == len({gateway.audience(caller) for caller in callers})
        answers.append(([match.id for match in results[0].matches], result.text, visible))

    assert answers[0] == answers[1]
    assert "desk/burn_letter" in repr(answers[1])


def test_access_gate_is_registered_as_a_call_hook(open_gateway: OpenGateway) -> None:
    gateway = open_gateway()
    with pytest.warns(DeprecationWarning, match=r'is now hooks\.named\("access"\)'):
        gate = gateway.gate

    assert isinstance(gate, AccessGate)
    assert open_gateway(options=WITHOUT).hooks.named("access") is None


@pytest.mark.parametrize(
    ("order", "names"), [("50", "guardrail access"), ("150", "access guardrail")]
)
async def test_hook_order_runs_a_third_party_hook_before_or_after_the_access_gate(
    install_plugin: InstallPlugin, order: str, names: str
) -> None:
    install_plugin(f"guard{order}", GUARDRAIL.replace("ORDER", order))

    assert names == await check_guarded_calls("access", f"guard{order}")


def test_second_plugin_that_provides_visibility_is_refused(install_plugin: InstallPlugin) -> None:
    install_plugin("views", VIEWS)

    with pytest.raises(
        ConfigError, match="two plugins give register_visibility the name 'policies'"
    ):
        Gateway(options=Options(plugins=("access", "views")))


async def test_host_policies_precede_file_policies_and_reload_changes_only_the_file(
    open_gateway: OpenGateway, tmp_path: Path
) -> None:
    """A configuration file cannot weaken the policies that the host's program set."""
    file = tmp_path / "mcp.json"

    def write(*policies: object) -> None:
        file.write_text(json.dumps({"mcpServers": {}, "policies": policies}), "utf-8")

    program_policy = AccessPolicy(action="deny", tools=("*/burn_*",))
    gateway = open_gateway(options=Options(policies=(program_policy,)))
    gateway.add_source(ListSource("desk", [tool("burn_letter"), tool("read_letter")]))
    write({"action": "allow"}, {"action": "deny", "tools": ["*/read_*"]})
    gateway.add_config(file)
    before = [entity.name for entity in await gateway.list_tools()]
    write({"action": "deny", "tools": ["*/read_*"]})
    await gateway.reload()
    after = [entity.name for entity in await gateway.list_tools()]

    assert (["read_letter"], []) == (before, after)
    with pytest.raises(UnknownToolError):
        await gateway.invoke("burn_letter")
