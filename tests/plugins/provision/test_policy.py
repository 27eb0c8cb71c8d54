"""Plans and how they are judged: exact commands, no references of strangers, no doubt unsaid."""

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


def judged(
    made: Plan, *, confidence: float = 1.0, programs: Programs = PROGRAMS, **options: Any
) -> dict[str, PolicyCheck]:
    gates = check_plan(
        made,
        confidence=confidence,
        options=ProvisionOptions(**options),
        programs=programs,
        private_hosts=("intranet",),
    )
    return {gate.name: gate for gate in gates}


def verdicts(made: Plan, **options: Any) -> dict[str, str]:
    return {name: gate.verdict for name, gate in judged(made, **options).items()}


def test_a_package_that_nothing_speaks_against_passes() -> None:
    for route in (TIME, EVERYTHING):
        assert {"pass"} == set(verdicts(plan(route)).values())


def test_the_commands_are_whole_and_without_a_shell() -> None:
    """One table: what would run, for each way to install."""
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
def test_what_is_no_name_of_a_package_is_refused(route: Package, identifier: str) -> None:
    """Installers take options, addresses and files where a name stands."""
    created = plan(replace(route, identifier=identifier))

    assert "refuse" == verdicts(created)["package"]


@pytest.mark.parametrize(
    "version",
    ["", "latest", "*", "^1.2.3", "~1.2", ">=1", "1.x", "1.2.3 || 2", "1 ", "-1", "\u0661.2.3"],
)
@pytest.mark.parametrize("route", [TIME, EVERYTHING])
def test_what_is_not_pinned_is_refused(route: Package, version: str) -> None:
    """Tomorrow's version is not the one that was looked at."""
    assert "refuse" == verdicts(plan(replace(route, version=version)))["version"]


def test_npm_versions_have_three_numbers() -> None:
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
def test_what_is_not_served_is_refused_with_its_reason(
    change: dict[str, Any], message: str
) -> None:
    gate = judged(plan(replace(TIME, **change)))["package"]

    assert "refuse" == gate.verdict
    assert message in gate.reason


@pytest.mark.parametrize(
    ("route", "message"),
    [(EVERYTHING, "npm is not installed"), (TIME, "neither uv nor pip is installed")],
)
def test_an_installer_that_is_missing_is_reported(route: Package, message: str) -> None:
    without = Programs(python="/py")
    created = plan(route, programs=without)

    assert () == created.install
    assert message in judged(created, programs=without)["package"].reason


@pytest.mark.parametrize(
    ("base_url", "verdict"),
    [
        ("", "pass"),
        ("https://index.example", "pass"),
        ("https://index.example/", "pass"),
        ("https://index.example.org", "ask"),
    ],
)
def test_another_index_is_asked_about(base_url: str, verdict: str) -> None:
    """A name says nothing without the index that it is a name of, and ours is fetched from."""
    created = plan(replace(TIME, base_url=base_url))
    found = judged(created, indexes=("https://index.example",))["index"]

    assert verdict == found.verdict
    assert (verdict == "ask") == (base_url in found.reason and bool(base_url))


@pytest.mark.parametrize(
    ("entry", "name", "verdict"),
    [
        ({"status": "active"}, "status", "pass"),
        ({"status": "deprecated"}, "status", "ask"),
        ({"status": "deleted"}, "status", "refuse"),
        ({"suspicions": ("reads like an order to a model",)}, "text", "refuse"),
    ],
)
def test_status_and_text_count(entry: dict[str, Any], name: str, verdict: str) -> None:
    """Deleted means malware, spam or worse."""
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
def test_trust_is_of_a_whole_namespace_or_one_name(
    patterns: tuple[str, ...], *, expected: bool
) -> None:
    """``org.example`` is not ``org.example-evil``."""
    created = plan(source="http://registry")
    assert ("pass" if expected else "ask") == verdicts(created, namespaces=patterns)["source"]


@pytest.mark.parametrize("pattern", ["*", "*/*", "org.*/x", "org", "/x", "org/", "org/x*"])
def test_a_pattern_that_trusts_too_much_is_no_option(pattern: str) -> None:
    with pytest.raises(ConfigError, match="no namespace"):
        ProvisionOptions(namespaces=(pattern,))


def test_a_low_confidence_is_a_doubt() -> None:
    assert "ask" == judged(plan(), confidence=0.5)["confidence"].verdict


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
def test_a_remote_server_is_asked_only_where_http_may_go(url: str, verdict: str) -> None:
    """The same guard as for every upstream."""
    assert verdict == verdicts(plan(replace(FAR, url=url)))["address"]


def test_a_remote_server_is_never_taken_unasked() -> None:
    """It has no version: what it is may change tomorrow."""
    assert "ask" == verdicts(plan(FAR))["version"]
    assert "refuse" == verdicts(plan(replace(FAR, transport="sse")))["transport"]


def test_inputs_are_filled_from_what_the_host_gives() -> None:
    """Fixed, given, default, from the environment; flags before their values."""
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
    created = plan(route, inputs={"folder": "/data", "host": "h"}, variables={"KEY": "canary"})

    assert ("stdio", "/data", "--port", "80", "--db", "h/x/{other}") == created.args
    assert {"KEY": "${KEY}", "LEVEL": "info"} == created.env
    assert ("KEY",) == created.needs.handed
    assert "ask" == verdicts(created)["inputs"]
    assert "canary" not in repr(created)
    entry = created.config_entry()
    assert ["command", "args", "env"] == list(entry)


def test_a_variable_that_the_host_names_is_no_doubt() -> None:
    route = replace(TIME, environment=(Input(name="KEY", required=True, secret=True),))

    assert "pass" == verdicts(plan(route, inputs={"KEY": "env:MY_KEY"}))["inputs"]


REFERS = "the entry refers to the environment or the keyring"
INVISIBLE = "the entry contains invisible characters"


def argument(**fields: Any) -> Package:
    return replace(TIME, arguments=(Input(**{"name": "a", **fields}),))


@pytest.mark.parametrize(
    ("route", "reason"),
    [
        # A server that cannot run is not installed.
        (argument(name="folder", required=True), "needs folder, but no value is given"),
        (argument(name="", required=True), "needs an argument, but no value is given"),
        (replace(TIME, environment=(Input(name="KEY", required=True),)), "needs KEY, but"),
        (replace(FAR, headers=(Input(name="Authorization", required=True),)), "needs Auth"),
        (replace(FAR, url="https://x/{tenant}", variables=(Input(name="tenant"),)), "needs tenant"),
        # What an entry says would be expanded from the environment and sent away.
        (argument(value="--x=${OPENAI_API_KEY}"), REFERS),
        (argument(default="env:OPENAI_API_KEY"), REFERS),
        (replace(TIME, environment=(Input(name="A", value="keyring:x/y"),)), REFERS),
        (replace(FAR, url="https://evil.org/${OPENAI_API_KEY}"), REFERS),
        (replace(FAR, headers=(Input(name="X", value="${OPENAI_API_KEY}"),)), REFERS),
        (replace(FAR, url="https://x/{a}", variables=(Input(name="a", default="${K}"),)), REFERS),
        # A person must see all of a command.
        (argument(value="x\u202ey"), INVISIBLE),
        (argument(flag="--x\x1b[8m", value="y"), INVISIBLE),
        (replace(TIME, environment=(Input(name="A\n", value="y"),)), INVISIBLE),
        (replace(FAR, url="https://evil.org/\u200b"), INVISIBLE),
    ],
)
def test_inputs_that_are_missing_or_unsafe_are_refused(
    route: Package | Remote, reason: str
) -> None:
    gate = judged(plan(route))["inputs"]

    assert "refuse" == gate.verdict
    assert gate.reason.startswith(reason)


def test_a_secret_is_named_not_written() -> None:
    """The configuration is a file that others read."""
    route = replace(TIME, environment=(Input(name="KEY", secret=True),))
    gate = judged(plan(route, inputs={"KEY": "canary-secret"}))["inputs"]

    assert "refuse" == gate.verdict
    assert "canary" not in gate.reason
    assert "KEY is a secret" in gate.reason


def test_a_remote_server_is_configured_by_its_address() -> None:
    route = replace(
        FAR,
        url="https://{tenant}.example.org/mcp",
        variables=(Input(name="tenant"),),
        headers=(Input(name="Authorization", required=True, secret=True),),
    )
    created = plan(route, inputs={"tenant": "acme", "Authorization": "Bearer ${TOKEN}"})

    assert {
        "type": "http",
        "url": "https://acme.example.org/mcp",
        "headers": {"Authorization": "Bearer ${TOKEN}"},
    } == created.config_entry()
    assert {"type": "http", "url": FAR.url} == plan(FAR).config_entry()
    assert ("remote", ()) == (created.kind, created.launch)


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
def test_a_server_gets_a_name_of_its_own(name: str, used: tuple[str, ...], expected: str) -> None:
    assert expected == server_name(RegistryEntry(name=name), frozenset(used))


def test_what_is_on_this_machine_is_found() -> None:
    """Whatever it is: a package of PyPI can always be installed."""
    found = Programs.find()

    assert 2 == len(found.pypi_commands(TIME, FOLDER))
