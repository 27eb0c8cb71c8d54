from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gateway.errors import ConfigError
from gateway.options.provision import ProvisionOptions
from gateway.plugins.provision import (
    BUNDLED,
    Input,
    Package,
    Plan,
    PolicyCheck,
    Programs,
    RegistryEntry,
    Remote,
    check_plan,
    make_plan,
    run_pip,
    server_name,
)

FOLDER = Path("/srv/tools/time")
PROGRAMS = Programs(python="/py", pip="/pip.py", npm=("/npm",), node="/node")
TIME = Package(kind="pypi", identifier="mcp-server-time", version="2026.10.19", transport="stdio")
EVERYTHING = Package(
    kind="npm", identifier="@scope/server-x", version="1.2.3-beta.1", transport="stdio"
)
FAR = Remote(transport="streamable-http", url="https://tools.example.org/mcp")


def plan(
    route: Package | Remote = TIME,
    *,
    inputs: dict[str, str] | None = None,
    variables: dict[str, str] | None = None,
    programs: Programs = PROGRAMS,
    **entry: Any,
) -> Plan:
    data = RegistryEntry(**{"name": "org.example/time", "source": BUNDLED, **entry})
    return make_plan(
        data,
        route,
        server="time",
        folder=FOLDER,
        inputs=inputs or {},
        environment=variables or {},
        programs=programs,
    )


def run_checks(
    plan_to_check: Plan, *, confidence: float = 1.0, programs: Programs = PROGRAMS, **options: Any
) -> dict[str, PolicyCheck]:
    gates = check_plan(
        plan_to_check,
        confidence=confidence,
        options=ProvisionOptions(**options),
        programs=programs,
        private_hosts=("intranet",),
    )
    return {gate.name: gate for gate in gates}


def verdicts(plan_to_check: Plan, **options: Any) -> dict[str, str]:
    return {name: gate.verdict for name, gate in run_checks(plan_to_check, **options).items()}


def test_harmless_package_passes_all_policy_checks() -> None:
    for route in (TIME, EVERYTHING):
        assert {"pass"} == set(verdicts(plan(route)).values())


def test_planned_commands_are_complete_and_use_no_shell() -> None:
    pip, uv = plan().install, plan(programs=Programs(python="/py", uv="/uv")).install
    npm = plan(EVERYTHING).install

    wheels = "--only-binary :all: mcp-server-time==2026.10.19"
    quietly = f"--quiet --no-compile --no-input --disable-pip-version-check {wheels}"
    inside = "/srv/tools/time/bin/python"
    safe = "--ignore-scripts --allow-git=none"
    flags = f"{safe} --no-audit --no-fund --save-exact --omit=dev"
    data = {
        pip: (
            "/py -I -m venv --without-pip /srv/tools/time",
            f"{inside} -I {Path(run_pip.__file__)} /pip.py install {quietly}",
        ),
        uv: (
            "/uv venv --quiet --no-project --python /py /srv/tools/time",
            f"/uv pip install --quiet --python {inside} {wheels}",
        ),
        npm: (f"/npm install --prefix /srv/tools/time {flags} @scope/server-x@1.2.3-beta.1",),
    }
    for commands, expected in data.items():
        assert expected == tuple(shlex.join(item) for item in commands)
    assert ("/srv/tools/time/bin/mcp-server-time",) == plan().launch
    assert () == plan(EVERYTHING).launch


@pytest.mark.parametrize(
    "identifier",
    [
        "-e", "--index-url=http://evil", "git+https://evil/x", "https://evil/x.whl", "a b", "a;b",
        "$(touch x)", "../x", "a==1", "a[b]", "x\n", "file:x", "npm:x", "a" * 101,
    ],
)  # fmt: skip
@pytest.mark.parametrize("route", [TIME, EVERYTHING])
def test_invalid_package_names_are_refused(route: Package, identifier: str) -> None:
    """Installers accept options, URLs and files in place of a name."""
    new_plan = plan(replace(route, identifier=identifier))

    assert "refuse" == verdicts(new_plan)["package"]


@pytest.mark.parametrize(
    "version",
    ["", "latest", "*", "^1.2.3", "~1.2", ">=1", "1.x", "1.2.3 || 2", "1 ", "-1", "\u0661.2.3"],
)
@pytest.mark.parametrize("route", [TIME, EVERYTHING])
def test_inexact_versions_are_refused(route: Package, version: str) -> None:
    """A later version is not the one that was checked."""
    assert "refuse" == verdicts(plan(replace(route, version=version)))["version"]


def test_npm_versions_need_three_numbers() -> None:
    assert "refuse" == verdicts(plan(replace(EVERYTHING, version="1.2")))["version"]
    assert "pass" == verdicts(plan(replace(TIME, version="1!1.2a1.post1.dev2+x.1")))["version"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "oci"}, "type 'oci'"),
        ({"transport": "sse"}, "transport is 'sse'"),
        ({"runtime_arguments": True}, "program that runs it"),
        ({"sha256": "ab"}, "file hash"),
    ],
)
def test_unsupported_packages_are_refused_with_a_reason(
    change: dict[str, Any], message: str
) -> None:
    gate = run_checks(plan(replace(TIME, **change)))["package"]

    assert "refuse" == gate.verdict
    assert message in gate.reason


@pytest.mark.parametrize(
    ("route", "message"),
    [(EVERYTHING, "npm is not installed"), (TIME, "neither uv nor pip is installed")],
)
def test_missing_installer_is_reported(route: Package, message: str) -> None:
    without = Programs(python="/py")
    new_plan = plan(route, programs=without)

    assert () == new_plan.install
    assert message in run_checks(new_plan, programs=without)["package"].reason


@pytest.mark.parametrize(
    ("base_url", "verdict"),
    [
        ("", "pass"),
        ("https://index.example", "pass"),
        ("https://index.example/", "pass"),
        ("https://index.example.org", "ask"),
    ],
)
def test_plan_needs_consent_if_the_entry_names_another_package_index(
    base_url: str, verdict: str
) -> None:
    """Packages are fetched from this machine's index, where the name may belong to someone else."""
    new_plan = plan(replace(TIME, base_url=base_url))
    checks = run_checks(new_plan, indexes=("https://index.example",))["index"]

    assert verdict == checks.verdict
    assert (verdict == "ask") == (base_url in checks.reason and bool(base_url))


@pytest.mark.parametrize(
    ("entry", "name", "verdict"),
    [
        ({"status": "active"}, "status", "pass"),
        ({"status": "deprecated"}, "status", "ask"),
        ({"status": "deleted"}, "status", "refuse"),
        ({"suspicions": ("reads like an order to a model",)}, "text", "refuse"),
    ],
)
def test_plan_checks_status_and_description_of_the_registry_entry(
    entry: dict[str, Any], name: str, verdict: str
) -> None:
    """A deleted entry may be malware or spam."""
    assert verdict == verdicts(plan(**entry))[name]


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        ((), False),
        (("org.example/*",), True),
        (("org.example/time",), True),
        (("org.example/other",), False),
        (("org.exampl/*",), False),
        (("org.example.evil/*",), False),
    ],
)
def test_trusted_pattern_matches_a_namespace_or_a_server_name(
    patterns: tuple[str, ...], *, expected: bool
) -> None:
    """``org.example`` is not ``org.example-evil``."""
    new_plan = plan(source="http://registry")
    assert ("pass" if expected else "ask") == verdicts(new_plan, namespaces=patterns)["source"]


@pytest.mark.parametrize("pattern", ["*", "*/*", "org.*/x", "org", "/x", "org/", "org/x*"])
def test_too_general_trust_patterns_are_refused(pattern: str) -> None:
    with pytest.raises(ConfigError, match="no namespace"):
        ProvisionOptions(namespaces=(pattern,))


def test_low_confidence_needs_consent() -> None:
    assert "ask" == run_checks(plan(), confidence=0.5)["confidence"].verdict


@pytest.mark.parametrize(
    ("url", "verdict"),
    [
        ("https://tools.example.org/mcp", "pass"),
        ("http://127.0.0.1:8000/mcp", "pass"),
        ("http://intranet/mcp", "pass"),
        ("http://tools.example.org/mcp", "refuse"),
        ("https://10.0.0.1/mcp", "refuse"),
        ("https://169.254.169.254/latest", "refuse"),
        ("https://[::ffff:10.0.0.1]/", "refuse"),
        ("https://u:p@tools.example.org/", "refuse"),
        ("https://{tenant}.example.org/", "refuse"),
        ("ftp://tools.example.org/", "refuse"),
        ("file:///etc/passwd", "refuse"),
        ("https://h:port/", "refuse"),
        ("https://[", "refuse"),
    ],
)
def test_remote_server_needs_an_allowed_url(url: str, verdict: str) -> None:
    assert verdict == verdicts(plan(replace(FAR, url=url)))["address"]


def test_remote_server_always_needs_consent() -> None:
    """A remote server has no version and may change at any time."""
    assert "ask" == verdicts(plan(FAR))["version"]
    assert "refuse" == verdicts(plan(replace(FAR, transport="sse")))["transport"]


def test_inputs_are_filled_from_entry_host_defaults_and_environment() -> None:
    route = replace(
        TIME,
        arguments=(
            Input(name="mode", value="stdio"),
            Input(name="folder", required=True),
            Input(name="port", flag="--port", default="80"),
            Input(name="unset", flag="--unset"),
            Input(
                name="db", flag="--db", value="{host}/x/{other}", variables=(Input(name="host"),)
            ),
        ),
        environment=(
            Input(name="KEY", required=True, secret=True),
            Input(name="LEVEL", default="info"),
            Input(name="OPTIONAL", secret=True),
        ),
    )
    new_plan = plan(route, inputs={"folder": "/data", "host": "h"}, variables={"KEY": "canary"})

    assert ("stdio", "/data", "--port", "80", "--db", "h/x/{other}") == new_plan.args
    assert {"KEY": "${KEY}", "LEVEL": "info"} == new_plan.env
    assert ("KEY",) == new_plan.needs.handed
    assert "ask" == verdicts(new_plan)["inputs"]
    assert "canary" not in repr(new_plan)
    entry = new_plan.config_entry()
    assert ["command", "args", "env"] == list(entry)


def test_variable_named_by_the_host_passes() -> None:
    route = replace(TIME, environment=(Input(name="KEY", required=True, secret=True),))

    assert "pass" == verdicts(plan(route, inputs={"KEY": "env:MY_KEY"}))["inputs"]


REFERS = "the entry refers to the environment or the keyring"
INVISIBLE = "the entry contains invisible characters"


def argument(**fields: Any) -> Package:
    return replace(TIME, arguments=(Input(**{"name": "a", **fields}),))


@pytest.mark.parametrize(
    ("route", "reason"),
    [
        # A server with missing inputs cannot run.
        (argument(name="folder", required=True), "needs folder, but no value is given"),
        (argument(name="", required=True), "needs an argument, but no value is given"),
        (replace(TIME, environment=(Input(name="KEY", required=True),)), "needs KEY, but"),
        (replace(FAR, headers=(Input(name="Authorization", required=True),)), "needs Auth"),
        (replace(FAR, url="https://x/{tenant}", variables=(Input(name="tenant"),)), "needs tenant"),
        # References in an entry would be expanded from the environment and sent away.
        (argument(value="--x=${OPENAI_API_KEY}"), REFERS),
        (argument(default="env:OPENAI_API_KEY"), REFERS),
        (replace(TIME, environment=(Input(name="A", value="keyring:x/y"),)), REFERS),
        (replace(FAR, url="https://evil.org/${OPENAI_API_KEY}"), REFERS),
        (replace(FAR, headers=(Input(name="X", value="${OPENAI_API_KEY}"),)), REFERS),
        (replace(FAR, url="https://x/{a}", variables=(Input(name="a", default="${K}"),)), REFERS),
        # A person must be able to see the whole command.
        (argument(value="x\u202ey"), INVISIBLE),
        (argument(flag="--x\x1b[8m", value="y"), INVISIBLE),
        (replace(TIME, environment=(Input(name="A\n", value="y"),)), INVISIBLE),
        (replace(FAR, url="https://evil.org/\u200b"), INVISIBLE),
    ],
)
def test_missing_or_unsafe_inputs_are_refused(route: Package | Remote, reason: str) -> None:
    gate = run_checks(plan(route))["inputs"]

    assert "refuse" == gate.verdict
    assert gate.reason.startswith(reason)


def test_secret_is_a_reference_in_the_plan() -> None:
    """Other people may read the configuration file."""
    route = replace(TIME, environment=(Input(name="KEY", secret=True),))
    gate = run_checks(plan(route, inputs={"KEY": "canary-secret"}))["inputs"]

    assert "refuse" == gate.verdict
    assert "canary" not in gate.reason
    assert "KEY is a secret" in gate.reason


def test_remote_server_is_configured_by_url() -> None:
    route = replace(
        FAR,
        url="https://{tenant}.example.org/mcp",
        variables=(Input(name="tenant"),),
        headers=(Input(name="Authorization", required=True, secret=True),),
    )
    new_plan = plan(route, inputs={"tenant": "acme", "Authorization": "Bearer ${TOKEN}"})

    assert {
        "type": "http",
        "url": "https://acme.example.org/mcp",
        "headers": {"Authorization": "Bearer ${TOKEN}"},
    } == new_plan.config_entry()
    assert {"type": "http", "url": FAR.url} == plan(FAR).config_entry()
    assert ("remote", ()) == (new_plan.kind, new_plan.launch)


@pytest.mark.parametrize(
    ("name", "used", "expected"),
    [
        ("org/time", (), "time"),
        ("org/time", ("Time",), "time-2"),
        ("org/time", ("time", "time-2"), "time-3"),
        ("org/..", (), "server"),
        ("org/" + "x" * 90, (), "x" * 40),
    ],
)
def test_installed_server_gets_a_unique_name(
    name: str, used: tuple[str, ...], expected: str
) -> None:
    assert expected == server_name(RegistryEntry(name=name), frozenset(used))


def test_programs_find_returns_the_installers_of_this_machine() -> None:
    """Packages of PyPI can be installed on every machine."""
    programs = Programs.find()

    assert 2 == len(programs.pypi_commands(TIME, FOLDER))
