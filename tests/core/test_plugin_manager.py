"""Loading of plugins, their hooks, and reports of failures."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.errors import ConfigError, NotApprovedError
from gateway.gateway import Gateway
from gateway.options import Options, UsageOptions
from gateway.plugin_manager import PluginInfo, Plugins
from gateway.runtime import VERSION
from gateway.testing import HashingEmbedder
from gateway.types import Hints
from tests.conftest import PATIENT, InstallPlugin, OpenGateway

TINY = """
from gateway.hookspecs import hookimpl
from gateway.testing import HashingEmbedder

@hookimpl
def register_embedders():
    return {"tiny": HashingEmbedder}
"""
CORRECTING = """
from gateway.hookspecs import hookimpl
from gateway.search.query import Correction

def correct(index, query, mask=None):
    return Correction(text="greet", changed=((query, "greet"),))

@hookimpl
def register_query_forms():
    return {"corrected": lambda: correct}
"""
NOTING = """
from gateway.hookspecs import hookimpl
from gateway.search.learned import NO_SIGNALS, UsageLog

class Log(UsageLog):
    name, order = "log", 500

    def __init__(self, *, options, store, telemetry, clock, submit):
        self.noted = [options.record]

    async def around(self, call, proceed):
        result = await proceed(call)
        self.noted.append(call.entity.id)
        return result

    async def signals(self, snapshot, tenant=""):
        return NO_SIGNALS

    def note_search(self, queries, result, *, task="", tenant=""):
        self.noted += queries

    def close(self):
        self.noted.append("closed")

@hookimpl
def register_usage_log():
    return {"usage": Log}
"""
VIEWS = """
from gateway.catalog.visibility import without_policies
from gateway.hookspecs import hookimpl

@hookimpl
def register_visibility():
    return {"policies": without_policies}
"""
PINNING = """
from gateway.hookspecs import hookimpl

class Pinned:
    name, order, weight = "pinned", 1000, 50.0

    def score(self, pool):
        return pool.snapshot.eligibility.has("tag", "pinned")[pool.positions]

@hookimpl
def register_signals():
    return [Pinned()]
"""


def greet(name: str) -> str:
    """Greet somebody."""
    return f"Hello, {name}"


def test_plugin_of_another_distribution_is_loaded(install_plugin: InstallPlugin) -> None:
    install_plugin("tiny", TINY)

    gateway = Gateway(strategy="auto", embedder="tiny", options=Options(plugins=("tiny",)))
    gateway.close()

    assert isinstance(gateway.embedder, HashingEmbedder)
    assert gateway.plugins.infos == (
        PluginInfo(
            name="tiny", distribution="gateway-tiny", version="1.2", hooks=("register_embedders",)
        ),
    )


def test_failing_plugin_is_reported_and_others_are_loaded(install_plugin: InstallPlugin) -> None:
    install_plugin("broken", "raise OSError('no such disk')")
    install_plugin("tiny2", TINY.replace("tiny", "tiny2"))

    plugins = Plugins(("broken", "tiny2"))

    assert [(info.name, bool(info.error)) for info in plugins.infos] == [
        ("broken", True),
        ("tiny2", False),
    ]
    assert "no such disk" in plugins.infos[0].error
    assert [*plugins.tables("register_embedders")] == ["tiny2"]


async def test_failing_plugin_is_in_the_report_and_needs_attention(
    install_plugin: InstallPlugin, open_gateway: OpenGateway
) -> None:
    install_plugin("broken_report", "raise OSError('no such disk')")
    gateway = open_gateway(options=Options(plugins=("broken_report",)))

    (note,) = (await gateway.report()).diagnostics
    (issue,) = await gateway.issues()

    assert note.code == "plugin_failed"
    assert "plugin broken_report: OSError: no such disk" in note.detail
    assert "uninstall gateway-broken_report" in note.detail
    assert (issue.kind, issue.detail) == ("configuration", note.detail)
    assert (await gateway.refresh()).diagnostics == (note,)


def test_two_plugins_with_the_same_embedder_name_are_refused(install_plugin: InstallPlugin) -> None:
    install_plugin("one", TINY)
    install_plugin("two", TINY)

    with pytest.raises(ConfigError, match="two plugins give register_embedders the name 'tiny'"):
        Plugins(("one", "two")).tables("register_embedders")


def test_checkout_without_an_installation_loads_its_own_plugins(tmp_path: Path) -> None:
    """Without an installation, there is no package metadata to read the version from."""
    for folder in map(Path, sys.path):
        for item in folder.iterdir() if folder.name == "site-packages" else ():
            link = tmp_path / item.name
            if not item.name.startswith("tool_gateway") and not link.is_symlink():
                link.symlink_to(item)
    code = "from gateway.plugin_manager import Plugins; print(Plugins(['spelling']).infos[0])"
    checkout = Path(__file__).parents[2]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(checkout), str(tmp_path)])}

    ran = subprocess.run(
        [sys.executable, "-S", "-c", code], env=env, capture_output=True, text=True, check=True
    )

    assert f"distribution='tool-gateway', version='{VERSION}'" in ran.stdout
    assert "error=''" in ran.stdout


def test_selected_plugin_that_is_not_installed_is_refused() -> None:
    with pytest.raises(ConfigError, match="the plugins nonesuch are not installed"):
        Gateway(options=Options(plugins=("nonesuch",)))


@pytest.mark.parametrize(
    ("variable", "names"), [("none", []), ("tiny", ["tiny"]), (" tiny , ", ["tiny"])]
)
def test_environment_variable_selects_plugins(
    install_plugin: InstallPlugin, monkeypatch: pytest.MonkeyPatch, variable: str, names: list[str]
) -> None:
    install_plugin("tiny", TINY)
    monkeypatch.setenv("GATEWAY_PLUGINS", variable)
    gateway = Gateway()
    gateway.close()

    assert names == [info.name for info in gateway.plugins.infos]


def test_plugins_option_overrides_the_environment_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATEWAY_PLUGINS", "local")
    gateway = Gateway(options=Options(plugins=()))
    gateway.close()

    assert gateway.plugins.infos == ()


def test_embedder_of_an_unselected_plugin_is_unknown() -> None:
    with pytest.raises(ConfigError, match=r"unknown embedder 'local'.*\(none\)"):
        Gateway(strategy="auto", embedder="local", options=Options(plugins=()))


async def test_gateway_without_plugins_searches_and_calls(open_gateway: OpenGateway) -> None:
    """Spelling correction is on by default, but needs a plugin."""
    gateway = open_gateway(options=replace(PATIENT, plugins=()))
    gateway.add_tool(greet)

    result = await gateway.search("greet sombody")
    steps = await gateway.next_steps(["greet"])
    answer = await gateway.invoke("greet", {"name": "Ada"})

    assert ["local/greet"] == [match.id for match in result.matches]
    assert "query_mended" not in {note.code for note in result.diagnostics}
    assert () == steps
    assert "Hello, Ada" == answer.text


async def test_plugin_corrects_the_spelling_of_queries(
    install_plugin: InstallPlugin, open_gateway: OpenGateway
) -> None:
    install_plugin("correcting", CORRECTING)
    gateway = open_gateway(options=replace(PATIENT, plugins=("correcting",)))
    gateway.add_tool(greet)

    result = await gateway.search("welcom")

    assert ["local/greet"] == [match.id for match in result.matches]
    assert "welcom → greet" in {note.detail for note in result.diagnostics}


async def test_failing_correction_keeps_the_query_and_is_reported(
    install_plugin: InstallPlugin, open_gateway: OpenGateway
) -> None:
    fails = CORRECTING.replace(
        'return Correction(text="greet", changed=((query, "greet"),))', "1 / 0"
    )
    install_plugin("mistaken", fails)
    gateway = open_gateway(options=replace(PATIENT, plugins=("mistaken",)))
    gateway.add_tool(greet)

    result = await gateway.search("greet")

    assert ["local/greet"] == [match.id for match in result.matches]
    assert (
        "ZeroDivisionError"
        in {note.code: note.detail for note in result.diagnostics}["plugin_failed"]
    )


async def test_usage_log_of_a_plugin_records_searches_and_calls(
    install_plugin: InstallPlugin, open_gateway: OpenGateway
) -> None:
    install_plugin("noting", NOTING)
    options = replace(PATIENT, plugins=("noting",), usage=UsageOptions(record=True))
    gateway = open_gateway(options=options)
    gateway.add_tool(greet)

    await gateway.search("greet")
    await gateway.invoke("greet", {"name": "Ada"})
    await gateway.aclose()

    assert [True, "greet", "local/greet", "closed"] == gateway.usage.noted


async def test_signal_of_a_plugin_raises_the_score_of_tools_and_is_explained(
    install_plugin: InstallPlugin, open_gateway: OpenGateway
) -> None:
    """The contributions of all signals add up to the score."""
    install_plugin("pinning", PINNING)
    options = replace(PATIENT, plugins=("pinning",))
    gateway = open_gateway(strategy="auto", embedder=HashingEmbedder(), options=options)
    gateway.add_tool(greet)
    gateway.add_tool(pay, hints=Hints(tags=("pinned",)))

    result = await gateway.search("greet somebody", explain=True)

    assert ["local/pay", "local/greet"] == [match.id for match in result.matches]
    signals = [dict(ranks.signals) for ranks in result.ranks]
    assert [50, 0] == [signal["pinned"] for signal in signals]
    assert ["vectors", "words", "clause words", "servers", "clause coverage", "pinned"] == [
        *signals[0]
    ]
    scores = [match.score for match in result.matches]
    assert pytest.approx(scores, abs=1e-5) == [sum(signal.values()) for signal in signals]


@pytest.mark.parametrize("score", ["1 / 0", "[1.0] * 99", "pool.scores + float('nan')"])
async def test_failing_signal_is_skipped_and_reported(
    install_plugin: InstallPlugin, open_gateway: OpenGateway, score: str
) -> None:
    install_plugin(
        "failing",
        "from gateway.hookspecs import hookimpl\n"
        "class Failing:\n"
        "    name, order, weight = 'failing', 50, 1.0\n"
        "    def score(self, pool):\n"
        f"        return {score}\n"
        "@hookimpl\n"
        "def register_signals():\n"
        "    return [Failing()]\n",
    )
    options = replace(PATIENT, plugins=("failing",))
    gateway = open_gateway(strategy="auto", embedder=HashingEmbedder(), options=options)
    gateway.add_tool(greet)

    result = await gateway.search("greet somebody")

    assert ["local/greet"] == [match.id for match in result.matches]
    notes = {note.code: note.detail for note in result.diagnostics}
    assert "the signal 'failing' is left out" == notes["plugin_failed"]


def test_plugin_signal_with_the_name_of_a_core_signal_is_refused(
    install_plugin: InstallPlugin,
) -> None:
    install_plugin("twice", PINNING.replace('"pinned", 1000', '"words", 1000'))

    with pytest.raises(ConfigError, match="two signals of ranking have the name 'words'"):
        Gateway(options=Options(plugins=("twice",)))


def test_gateway_without_plugin_usage_has_no_call_log(open_gateway: OpenGateway) -> None:
    gateway = open_gateway(options=replace(PATIENT, plugins=()))

    with pytest.raises(ConfigError, match="needs the plugin 'usage', which is not loaded: add it"):
        assert gateway.usage


@pytest.mark.parametrize(
    "usage", [UsageOptions(record=True), UsageOptions(learn="on"), UsageOptions(rerank="bounded")]
)
def test_recording_calls_requires_the_plugin_usage(
    install_plugin: InstallPlugin, usage: UsageOptions
) -> None:
    install_plugin("tiny", TINY)

    with pytest.raises(ConfigError, match="needs the plugin 'usage', which is not loaded: add it"):
        Gateway(options=Options(plugins=("tiny",), usage=usage))


GUARDRAIL = """
from gateway.call.hooks import CallHook
from gateway.errors import NotApprovedError
from gateway.hookspecs import hookimpl

class Guardrail(CallHook):
    name = "guardrail"
    order = ORDER

    async def around(self, call, proceed):
        if call.arguments.get("amount", 0) > 100:
            raise NotApprovedError("too much")
        return await proceed(call)

@hookimpl
def register_call_hooks(options, store, telemetry):
    return [Guardrail()]
"""
WAITING = """
from gateway.call.hooks import CallHook
from gateway.hookspecs import hookimpl

class Waiting(CallHook):
    name, order = "waiting", 100

@hookimpl
def register_call_hooks(options, store, telemetry):
    return [Waiting()]
"""


@pytest.mark.parametrize(
    ("order", "names"), [("50", "guardrail waiting"), ("150", "waiting guardrail")]
)
async def test_call_hook_of_another_distribution_runs_around_calls(
    install_plugin: InstallPlugin, order: str, names: str
) -> None:
    install_plugin("waiting", WAITING)
    install_plugin(f"guard{order}", GUARDRAIL.replace("ORDER", order))

    assert names == await check_guarded_calls("waiting", f"guard{order}")


async def check_guarded_calls(*plugins: str) -> str:
    """Check that the guardrail among *plugins* refuses large payments only, and return the names
    of the call hooks in order.
    """
    async with Gateway(options=Options(plugins=plugins)) as gateway:
        gateway.add_tool(pay)
        paid = await gateway.invoke("pay", {"amount": 5})
        with pytest.raises(NotApprovedError, match="too much"):
            await gateway.invoke("pay", {"amount": 500})

    assert "paid 5" == paid.text
    return " ".join(hook.name for hook in gateway.hooks.hooks)


def pay(amount: int) -> str:
    """Pay an amount."""
    return f"paid {amount}"


def test_two_plugins_with_visibility_rules_are_refused(install_plugin: InstallPlugin) -> None:
    for name in ("views", "other_views"):
        install_plugin(name, VIEWS)

    with pytest.raises(
        ConfigError, match="two plugins give register_visibility the name 'policies'"
    ):
        Gateway(options=Options(plugins=("views", "other_views")))
