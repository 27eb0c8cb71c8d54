"""What `docs/deployment.md` says of a container, a proxy and metrics, on a real server."""

from __future__ import annotations

import json
import re
from pathlib import Path

import httpx2

from tests.cli.running import Place

PAGE = (Path(__file__).parents[2] / "docs/deployment.md").read_text("utf-8")


def test_the_command_of_the_container_serves_health_and_metrics_as_the_page_says(
    place: Place,
) -> None:
    """Names of hosts, tokens, and the metrics."""
    command = json.loads(re.findall(r"^CMD (\[.*\])$", PAGE, re.MULTILINE)[0])
    program, http, options = command[:2], command[2], command[3:]
    options[options.index("--host") + 1] = "127.0.0.1"
    config = place.config({"gone": {"command": "no-such-program"}})

    with place.serve(*options, "--config", config, GATEWAY_TOKEN="t" * 20) as (_, _, url):
        base, token = url.removesuffix("/mcp"), {"Authorization": f"Bearer {'t' * 20}"}
        with httpx2.Client(base_url=base, trust_env=False) as client:
            health = client.get("/api/health", headers={"Host": "gateway"})
            foreign = client.get("/api/health", headers={"Host": "tools.example.com"})
            query = {"query": "time"}
            client.post("/api/search/semantic", json=query, headers=token)
            closed = client.get("/metrics")
            page = client.get("/metrics", headers=token)

    assert (["gateway", "serve"], "--http") == (program, http)
    assert [200, 421, 401, 200] == [
        answer.status_code for answer in (health, foreign, closed, page)
    ]
    assert 'gateway_servers{gateway_server_state="' in page.text
    assert "process_resident_memory_bytes" in page.text


def test_health_needs_no_token_and_knows_the_host_of_the_probes() -> None:
    """A probe that is refused would end a healthy container."""
    hosts = {*re.findall(r'"--allow-host", "([^"]+)"', PAGE)}
    probes = {*re.findall(r"name: Host, value: (\w+)", PAGE), "127.0.0.1"}

    assert probes <= hosts
    assert "http://127.0.0.1:8930/api/health" in PAGE
