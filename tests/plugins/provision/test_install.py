from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from gateway.errors import UpstreamError, UpstreamTimeoutError
from gateway.plugins.provision import Package, Plan, Programs, RegistryEntry, run_command
from gateway.plugins.provision.install import install
from tests.core.mcp.conftest import until
from tests.fakes import is_running

PROGRAMS = Programs(node="/usr/bin/node")


async def python(program: str, folder: Path, *, limit_s: float = 60.0) -> None:
    await run_command(
        "srv", (sys.executable, "-c", program), folder=folder, path="", limit_s=limit_s
    )


async def test_install_command_runs_in_its_folder_with_few_environment_variables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The user's mirrors must reach an installer, the user's secrets must not."""
    monkeypatch.setenv("OPENAI_API_KEY", "canary")
    monkeypatch.setenv("PIP_INDEX_URL", "http://mirror")
    await python(
        "import json, os; json.dump([os.getcwd(), dict(os.environ)], open('out.json', 'w'))",
        tmp_path,
    )

    folder, values = json.loads((tmp_path / "out.json").read_text())
    assert str(tmp_path) == folder
    assert "http://mirror" == values["PIP_INDEX_URL"]
    assert "OPENAI_API_KEY" not in values


async def test_error_of_a_failed_install_command_shows_the_end_of_its_output(
    tmp_path: Path,
) -> None:
    """Credentials in the URL of a mirror are removed."""
    program = "import sys; print('x' * 300000); sys.exit('a' * 40000 + ' http://me:pw@mirror/x no')"

    with pytest.raises(
        UpstreamError, match=r"failed \(1\): .*http://\*\*\*@mirror/x no$"
    ) as caught:
        await python(program, tmp_path)
    assert "pw" not in str(caught.value)
    assert len(str(caught.value)) < 800


async def test_install_command_is_killed_with_its_children_at_the_time_limit(
    tmp_path: Path,
) -> None:
    program = (
        "import signal, subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import signal; signal.pause()'])\n"
        "open('child', 'w').write(str(child.pid))\n"
        "signal.pause()\n"
    )
    with pytest.raises(UpstreamTimeoutError, match="did not end within 2"):
        await python(program, tmp_path, limit_s=2.0)

    data = tmp_path / "child"
    if data.exists():
        await until(lambda: not is_running(data.read_text()))


async def test_missing_installer_program_is_reported(tmp_path: Path) -> None:
    with pytest.raises(UpstreamError, match="no-such cannot be started: FileNotFoundError"):
        await run_command("srv", ("/no-such",), folder=tmp_path, path="", limit_s=1)


async def test_run_command_searches_the_given_path_first(tmp_path: Path) -> None:
    """npm must find its own node."""
    data = "import os; open('out.json', 'w').write(os.environ['PATH'])"
    command = (sys.executable, "-c", data)
    await run_command("srv", command, folder=tmp_path, path="/first", limit_s=60)

    assert "/first" == (tmp_path / "out.json").read_text().split(os.pathsep)[0]


def planned(folder: Path, kind: str) -> Plan:
    route = Package(kind=kind, identifier="tiny", version="1.0.0", transport="stdio")
    return Plan(entry=RegistryEntry(name="a/tiny"), route=route, server="tiny", folder=folder)


def npm(folder: Path, manifest: object, **lock: Any) -> Path:
    home = folder / "node_modules" / "tiny"
    home.mkdir(parents=True)
    (home / "package.json").write_text(json.dumps(manifest))
    (home / "server.js").write_text("")
    (folder / "node_modules" / ".package-lock.json").write_text(json.dumps(lock))
    return home


@pytest.mark.parametrize(
    "program", ["server.js", {"other": "server.js"}, {"x": "x.js", "tiny": "./server.js"}]
)
async def test_npm_program_is_named_like_the_package_or_is_the_only_one(
    tmp_path: Path, program: object
) -> None:
    packages = {"node_modules/a/node_modules/@b/c": {"version": "2"}}
    home = npm(tmp_path, {"version": "1.0.0", "bin": program}, packages=packages)

    plan, installed = await install(planned(tmp_path, "npm"), PROGRAMS, limit_s=1)

    assert ("/usr/bin/node", str(home / "server.js")) == plan.launch
    assert ("@b/c==2",) == installed


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        ({"version": "2.0.0", "bin": "server.js"}, "another version"),
        ({"version": "1.0.0"}, "the package has no program"),
        ({"version": "1.0.0", "bin": {}}, "the package has no program"),
        ({"version": "1.0.0", "bin": {"x": "a", "y": "b"}}, "has the programs x, y"),
        ({"version": "1.0.0", "bin": "../../../etc/passwd"}, "not a file in its folder"),
        ({"version": "1.0.0", "bin": "gone.js"}, "not a file in its folder"),
        ([], "cannot be read"),
    ],
)
async def test_installation_fails_if_an_npm_package_has_no_program_of_its_own(
    tmp_path: Path, manifest: object, message: str
) -> None:
    """The started file must belong to the approved package."""
    npm(tmp_path, manifest, packages={})

    with pytest.raises(UpstreamError, match=message):
        await install(planned(tmp_path, "npm"), PROGRAMS, limit_s=1)


async def test_package_missing_after_its_installation_fails(tmp_path: Path) -> None:
    with pytest.raises(UpstreamError, match="is missing after its installation"):
        await install(planned(tmp_path, "pypi"), PROGRAMS, limit_s=1)
    with pytest.raises(UpstreamError, match=r"package\.json of the installed package"):
        await install(planned(tmp_path, "npm"), PROGRAMS, limit_s=1)


def distribution(folder: Path) -> Path:
    """Write the metadata of an installed Python package, and return their folder."""
    info = folder / "lib" / "python3" / "site-packages" / "tiny-1.0.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tiny\nVersion: 1.0.0\n")
    return info


@pytest.mark.parametrize(
    ("program", "bin_leads_to"),
    [("../../outside", "."), ("linked", "."), ("gone", "."), ("outside", "../..")],
)
async def test_installation_fails_if_a_python_program_is_outside_its_folder(
    tmp_path: Path, program: str, bin_leads_to: str
) -> None:
    """An entry point or a link may name any file."""
    (tmp_path / "outside").touch()
    folder = tmp_path / "tiny"
    info = distribution(folder)
    (info / "entry_points.txt").write_text(f"[console_scripts]\n{program} = tiny:main\n")
    if bin_leads_to == ".":
        (folder / "bin").mkdir()
        (folder / "bin" / "linked").symlink_to(tmp_path / "outside")
    else:
        (folder / "bin").symlink_to(tmp_path)

    with pytest.raises(UpstreamError, match="not a file in its folder"):
        await install(planned(folder, "pypi"), PROGRAMS, limit_s=1)


async def test_installation_fails_if_a_python_package_has_no_program(tmp_path: Path) -> None:
    distribution(tmp_path)

    with pytest.raises(UpstreamError, match="the package has no program"):
        await install(planned(tmp_path, "pypi"), PROGRAMS, limit_s=1)
