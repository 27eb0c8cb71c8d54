"""A real Prometheus, and pages of metrics for it."""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import yaml
from prometheus_client import CollectorRegistry, make_asgi_app
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from gateway.testing.endpoint import Loopback
from tests.installed import installed

TARGETS = "targets.json"


def program(name: str) -> str:
    """Return the path of a program of Prometheus 2.42 or newer."""
    return installed(name, package="prometheus")


class Page:
    """A page of metrics on its own port."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.is_refused = False
        self.read = asyncio.Event()
        """Set after Prometheus has read the page."""
        self._loop = asyncio.get_running_loop()
        self._app = make_asgi_app(registry)
        self._server = Loopback(self)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = Response(status_code=401) if self.is_refused else self._app
        await app(scope, receive, send)
        self._loop.call_soon_threadsafe(self.read.set)

    @asynccontextmanager
    async def served(self) -> AsyncIterator[str]:
        self._server.start()
        try:
            yield f"127.0.0.1:{self._server.port}"
        finally:
            await asyncio.to_thread(self._server.close)


class Prometheus:
    """A Prometheus with the exported configuration, which reads every second."""

    def __init__(self, folder: Path, http: httpx2.AsyncClient) -> None:
        self._folder, self._http = folder, http

    def watch(self, targets: Sequence[str]) -> None:
        """Read the metrics of *targets* from some seconds later on."""
        fresh = self._folder / "fresh.json"
        fresh.write_text(json.dumps([{"targets": [*targets]}]), "utf-8")
        fresh.replace(self._folder / TARGETS)

    async def query(self, expression: str) -> list[Mapping[str, str]]:
        """Return the labels of the present series of *expression*."""
        form = {"query": expression}
        answer = (await self._http.post("/api/v1/query", data=form)).json()
        assert "success" == answer["status"], f"{answer}: {expression}"
        result = answer["data"]["result"]
        return [item["metric"] for item in result if math.isfinite(float(item["value"][1]))]

    async def fired(self) -> set[str]:
        series = await self.query('count_over_time(ALERTS{alertstate="firing"}[10m])')
        return {sample["alertname"] for sample in series}

    async def firing(self) -> dict[str, tuple[str, ...]]:
        """Return the annotations of each firing alert, keyed by name."""
        alerts = (await self._http.get("/api/v1/alerts")).json()["data"]["alerts"]
        return {
            alert["labels"]["alertname"]: tuple(alert["annotations"].values())
            for alert in alerts
            if alert["state"] == "firing"
        }


@asynccontextmanager
async def prometheus(folder: Path, rules: str) -> AsyncIterator[Prometheus]:
    """Run Prometheus with the alerts *rules*; yield it when it answers."""
    second = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    job = {"job_name": "gateway", "file_sd_configs": [{"files": [TARGETS]}]}
    config = {"global": second, "rule_files": ["rules.yml"], "scrape_configs": [job]}
    (folder / "rules.yml").write_text(rules, "utf-8")
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config), "utf-8")
    process = await asyncio.create_subprocess_exec(
        program("prometheus"),
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'tsdb'}",
        "--web.listen-address=127.0.0.1:0",
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stderr is not None
    try:
        address, messages = None, list[str]()
        while address is None and (line := (await process.stderr.readline()).decode()):
            messages.append(line)
            address = re.search(r'"Listening on" address=([\d.:]+)', line)
        assert address is not None, "".join(messages)
        url = f"http://{address[1]}"
        async with httpx2.AsyncClient(base_url=url, trust_env=False) as http:
            yield Prometheus(folder, http)
    finally:
        if process.returncode is None:
            process.terminate()
        await process.communicate()
