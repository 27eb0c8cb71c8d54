"""`gateway dashboards export`."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from gateway.cli.commands.dashboards import FILES
from tests.apps.cli.running import Place

EVERY = {path.relative_to(FILES).as_posix() for path in FILES.rglob("*") if path.is_file()}


@pytest.fixture
def folder(place: Place) -> Path:
    """Folder to which the test exports; it does not exist yet."""
    return place.folder / "a" / "b"


def written(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_export_writes_files_that_all_users_can_read(place: Place, folder: Path) -> None:
    """Grafana and Prometheus run as other users."""
    first = place.run("dashboards", "export", str(folder), "--json")
    second = place.run("dashboards", "export", str(folder))

    assert (0, 0) == (first.code, second.code)
    assert dict.fromkeys(EVERY, "written") == {
        file["file"]: file["outcome"] for file in first.json["files"]
    }
    assert written(FILES) == written(folder)
    modes = {path.stat().st_mode & 0o444 for path in folder.rglob("*") if path.is_file()}
    assert {0o444} == modes
    assert (len(EVERY), 0) == (second.out.count("there"), second.out.count("written"))
    assert f"next: docker compose -f {folder}/compose.yaml up -d" in second.err


def test_export_replaces_changed_files_only_with_the_option_replace(
    place: Place, folder: Path
) -> None:
    """Without --replace, missing files are not written either if a file differs."""
    place.run("dashboards", "export", str(folder))
    (folder / "compose.yaml").write_text("mine")
    (folder / "prometheus" / "alerts.yml").unlink()

    refused = place.run("dashboards", "export", str(folder), "--json")
    before = written(folder)
    replaced = place.run("dashboards", "export", str(folder), "--replace", "--json")

    assert 2 == refused.code
    assert "these files differ: compose.yaml; --replace" in refused.json["error"]["message"]
    assert b"mine" == before["compose.yaml"]
    assert "prometheus/alerts.yml" not in before
    outcomes = {file["file"]: file["outcome"] for file in replaced.json["files"]}
    assert ("replaced", "written") == (outcomes["compose.yaml"], outcomes["prometheus/alerts.yml"])
    assert written(FILES) == written(folder)


def test_export_refuses_a_folder_that_is_a_file(place: Place) -> None:
    file = place.put("file", "x")

    ran = place.run("dashboards", "export", str(file))

    assert 2 == ran.code
    assert f"{str(file)!r} cannot be written: " in ran.err


def test_export_contains_all_files_that_the_compose_file_mounts() -> None:
    """Ports, paths and the data source agree in all files."""
    compose = yaml.safe_load((FILES / "compose.yaml").read_text("utf-8"))
    services = compose["services"]
    mounts = [volume.split(":") for service in services.values() for volume in service["volumes"]]
    inside = {target: source for source, target, *_ in mounts}
    text = {name: (FILES / name).read_text("utf-8") for name in EVERY}
    scraped = yaml.safe_load(text["prometheus/prometheus.yml"])["scrape_configs"]
    targets = [job["static_configs"][0]["targets"] for job in scraped]
    collector = yaml.safe_load(text["collector/config.yaml"])
    (source,) = yaml.safe_load(text["grafana/provisioning/datasources/prometheus.yaml"])[
        "datasources"
    ]
    (provider,) = yaml.safe_load(text["grafana/provisioning/dashboards/gateway.yaml"])["providers"]
    listen = next(service for service in services["prometheus"]["command"] if "listen" in service)

    for origin, *_ in mounts:
        assert (FILES / origin).is_dir() if origin.startswith(".") else origin in compose["volumes"]
    assert {"host"} == {service["network_mode"] for service in services.values()}
    assert "./grafana/dashboards" == inside[provider["options"]["path"]]
    assert "./prometheus" == inside["/etc/prometheus"]
    assert "./collector" == inside["/etc/otelcol"]
    assert source["url"] == f"http://{listen.partition('=')[2]}"
    assert [["127.0.0.1:8930"], [collector["exporters"]["prometheus"]["endpoint"]]] == targets
    assert "127.0.0.1:4318" == collector["receivers"]["otlp"]["protocols"]["http"]["endpoint"]


def test_docs_show_the_exported_compose_file() -> None:
    page = (Path(__file__).parents[3] / "docs" / "telemetry.md").read_text("utf-8")

    assert f"```yaml\n{(FILES / 'compose.yaml').read_text('utf-8')}```" in page
