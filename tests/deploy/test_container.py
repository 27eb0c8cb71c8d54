"""The Containerfile: a linter's report, and its commands run in a separate root file system."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy.containerfile import FILE, ROOT, stages
from tests.deploy.scratch import is_possible

DOWN = "postgresql://gateway:x@127.0.0.1:1/gateway"
SECRETS = {"store": DOWN, "host-key": "k" * 32, "token": "o" * 32, "prometheus-token": "p" * 32}
"""Contents of the secrets that the cluster mounts; the database at the address of the store is
down."""
REQUESTS = [
    ("/livez", {"Host": "10.1.2.3:8930"}),
    ("/readyz", {"Host": "10.1.2.3:8930"}),
    ("/api/health", {"Host": "gateway:8930"}),
    ("/api/health", {"Host": "10.1.2.3:8930"}),
    ("/metrics", {"Host": "gateway:8930"}),
    (
        "/metrics",
        {"Host": "gateway:8930", "Authorization": f"Bearer {SECRETS['prometheus-token']}"},
    ),
]
"""Probes use an address, other requests the service name; metrics require a token."""


def pod() -> Any:
    """Return the specification of the container in the deployment."""
    text = (ROOT / "deploy/kubernetes/deployment.yaml").read_text("utf-8")
    (container,) = yaml.safe_load(text)["spec"]["template"]["spec"]["containers"]
    return container


def test_linter_finds_no_fault_in_the_containerfile() -> None:
    """Advice about the number of layers is ignored."""
    checker = Path(sys.executable).with_name("hadolint")
    checked = subprocess.run(
        [checker, "--failure-threshold", "warning", FILE],
        capture_output=True,
        text=True,
        check=False,
    )

    assert (0, "") == (checked.returncode, checked.stderr)


def test_image_contains_no_secret_and_does_not_run_as_root() -> None:
    """The user is a number, so that clusters can check it. The last stage copies no source code."""
    build, run = stages()
    variables = " ".join((*build.env, *run.env)).casefold()

    assert "10001:10001" == run.one("USER")
    assert ["--from=build /opt/gateway /opt/gateway"] == run.all("COPY")
    assert not any(word in variables for word in ("token", "key", "password", "secret"))


@pytest.mark.skipif(not is_possible(), reason="it takes a root of its own")
def test_command_of_the_image_serves_on_a_read_only_root(tmp_path: Path) -> None:
    """The command runs as the user of the image. The network is off, and the service is healthy
    although its store is down.
    """
    _, run = stages()
    env = {**run.env, "PYTHONPATH": str(ROOT), "POD_IP": "10.1.2.3"}
    for item in pod()["env"]:
        if reference := item["valueFrom"].get("secretKeyRef"):
            env[item["name"]] = SECRETS[reference["key"]]
    # The encoders are prepared when the image is built.
    command = [*run.command("ENTRYPOINT"), *run.command("CMD"), "--strategy=graph"]
    layer, command = str(tmp_path), [*command, "--drain-delay=0"]
    spec: dict[str, object] = {"layer": layer, "opt": None, "env": env, "command": command}
    spec |= {"requests": REQUESTS}
    program = [sys.executable, "-m", "tests.deploy.scratch", "serve", json.dumps(spec)]
    done = subprocess.run(
        ["unshare", "--mount", "--net", *program],  # noqa: S607  (where it is differs)
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert 0 == done.returncode, done.stderr
    observed = json.loads(done.stdout)
    statuses, (_, probe, *_, metrics) = zip(*observed["answers"], strict=True)
    ready = {"status": "ready", "failed_servers": 0, "degraded": True}
    assert (200, 200, 200, 421, 401, 200) == statuses
    assert ready == json.loads(probe)
    assert "process_resident_memory_bytes" in metrics
    assert ([1, 0], False, 0) == (observed["health"], observed["wrote"], observed["code"])
