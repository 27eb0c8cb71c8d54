"""The compose file and the Kubernetes manifests: their schemas, and agreement with each other and
the image.
"""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml

from gateway.cli.commands.dashboards import FILES
from gateway.cli.signals import LIMIT_S
from gateway.serve.http_options import HttpOptions
from tests.dashboards.prometheus import program
from tests.deploy.containerfile import ROOT, stages

DEPLOY = ROOT / "deploy"
MANIFESTS = sorted((DEPLOY / "kubernetes").rglob("*.yaml"))
OPEN = HttpOptions(host="0.0.0.0", token="t")
END_S = OPEN.delay_s + OPEN.drain_timeout_s + LIMIT_S
"""Maximum duration of the shutdown in seconds."""


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text("utf-8"))


BY_KIND = {each["kind"]: each for each in map(read, MANIFESTS)}
COMPOSE = read(DEPLOY / "compose.yaml")
POD = BY_KIND["Deployment"]["spec"]["template"]
(CONTAINER,) = POD["spec"]["containers"]


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.stem)
def test_every_manifest_matches_the_schema_of_kubernetes(path: Path) -> None:
    """The newest version in the package is used, without unknown fields."""
    kubernetes_validate.validate(read(path), kubernetes_validate.latest_version(), strict=True)


def test_compose_file_matches_its_schema() -> None:
    schemas = files("check_jsonschema.builtin_schemas.vendor")
    schema = json.loads((schemas / "compose-spec.json").read_text("utf-8"))

    jsonschema.validate(COMPOSE, schema)


def test_prometheus_accepts_the_configurations_of_the_deployments(tmp_path: Path) -> None:
    """Debian's Prometheus cannot query Kubernetes, so this part is omitted."""
    page = (ROOT / "docs" / "deployment.md").read_text("utf-8")
    blocks = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    output = [block for block in blocks if "scrape_" in block and "kubernetes_sd" not in block]
    for text in ((DEPLOY / "prometheus.yml").read_text("utf-8"), *output):
        file = tmp_path / "prometheus.yml"
        file.write_text(text, "utf-8")
        command = [program("promtool"), "check", "config", "--syntax-only", str(file)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)

        assert (0, 1) == (done.returncode, len(output)), done.stderr


def test_pod_meets_the_restricted_standard() -> None:
    """This is the strictest standard of Kubernetes for pods."""
    spec, own = POD["spec"]["securityContext"], CONTAINER["securityContext"]
    _, image = stages()

    assert (True, "RuntimeDefault") == (spec["runAsNonRoot"], spec["seccompProfile"]["type"])
    assert f"{spec['runAsUser']}:{spec['runAsGroup']}" == image.one("USER")
    assert (False, True) == (own["allowPrivilegeEscalation"], own["readOnlyRootFilesystem"])
    assert {"drop": ["ALL"]} == own["capabilities"]
    assert {"configMap", "emptyDir"} == {
        key for volume in POD["spec"]["volumes"] for key in volume
    } - {"name"}


def test_selectors_in_manifests_match_the_pods_of_the_gateway() -> None:
    """A disruption budget or network policy without a matching pod would be valid, but without
    effect.
    """
    labels = POD["metadata"]["labels"]
    selectors = [
        BY_KIND["Deployment"]["spec"]["selector"]["matchLabels"],
        BY_KIND["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"],
        BY_KIND["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"],
        BY_KIND["Service"]["spec"]["selector"],
        *(
            onstraint["labelSelector"]["matchLabels"]
            for onstraint in POD["spec"]["topologySpreadConstraints"]
        ),
    ]
    ports = {onstraint["name"] for onstraint in CONTAINER["ports"]}
    named = {CONTAINER[probe]["httpGet"]["port"] for probe in ("readinessProbe", "livenessProbe")}

    assert [labels] * 6 == selectors
    assert {"http"} == ports == named
    assert "http" == BY_KIND["Service"]["spec"]["ports"][0]["targetPort"]
    assert "Deployment/gateway" == "/".join(
        BY_KIND["HorizontalPodAutoscaler"]["spec"]["scaleTargetRef"][key]
        for key in ("kind", "name")
    )


def test_compose_file_and_manifests_match_the_image() -> None:
    """Command (except host names), folders, configuration and grace period are compared."""
    _, image = stages()
    service = COMPOSE["services"]["gateway"]
    command = [item for item in image.command("CMD") if item != "0.0.0.0"]
    plain = {item.partition("=")[0] for item in CONTAINER["args"]}
    mounts = {item["mountPath"] for item in CONTAINER["volumeMounts"]}
    texts = {path.name: path.read_text("utf-8") for path in (DEPLOY / "config").iterdir()}
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]

    assert {item for item in command if item.startswith("-")} <= plain
    assert {image.one("WORKDIR"), image.one("VOLUME"), "/tmp"} == mounts  # noqa: S108
    assert BY_KIND["ConfigMap"]["data"] == texts
    assert [f"tool-gateway:{version}"] * 2 == [service["image"], CONTAINER["image"]]
    assert POD["spec"]["terminationGracePeriodSeconds"] >= END_S
    assert int(service["stop_grace_period"].removesuffix("s")) >= END_S
    assert [True, ["/tmp"], ["ALL"]] == [  # noqa: S108
        service[key] for key in ("read_only", "tmpfs", "cap_drop")
    ]


def test_environment_variables_with_secrets_are_set_in_every_deployment() -> None:
    """A variable that is not set would be empty."""
    service = COMPOSE["services"]["gateway"]["environment"]
    example = (DEPLOY / ".env.example").read_text("utf-8")
    pods = {item["name"] for item in CONTAINER["env"]} - {"POD_IP"}
    tokens = (DEPLOY / "config" / "tokens.toml").read_text("utf-8")
    text = (DEPLOY / "compose.yaml").read_text("utf-8")
    expected = {part.partition("}")[0].partition(":")[0] for part in text.split("${")[1:]}

    assert set(service) == pods
    assert {f"{name}=" for name in expected} == {
        line for line in example.splitlines() if not line.startswith("#")
    }
    assert all(f"${{{name}}}" in tokens for name in pods if name.endswith("_TOKEN"))


def test_compose_file_of_the_telemetry_stack_mounts_the_exported_files() -> None:
    services = COMPOSE["services"]
    own = read(FILES / "compose.yaml")["services"]
    sources = [
        (DEPLOY / volume.split(":")[0]).resolve()
        for service in services.values()
        for volume in service["volumes"]
        if volume.startswith(".")
    ]

    assert all(source.exists() for source in sources)
    assert {FILES / "prometheus" / "alerts.yml", FILES / "grafana" / "dashboards"} <= {*sources}
    for name in ("prometheus", "grafana"):
        assert own[name]["image"] == services[name]["image"]
    scrape = read(DEPLOY / "prometheus.yml")
    (job,) = scrape["scrape_configs"]
    assert ["gateway", [{"targets": ["gateway:8930"]}]] == [job["job_name"], job["static_configs"]]
    assert [f"/run/secrets/{name}" for name in COMPOSE["secrets"]] == [
        job["authorization"]["credentials_file"]
    ]
