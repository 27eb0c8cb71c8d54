"""`gateway console`, and the console of `gateway serve --http`."""

from __future__ import annotations

import subprocess
import sys

import httpx2

from tests.apps.cli.running import BIN, Place


def sign_in(line: str) -> int:
    """Open the URL in *line*, which a command printed, like a browser; return the status of the
    page.
    """
    url = line.split("console: ")[1].strip()
    with httpx2.Client(follow_redirects=True) as client:
        return client.get(url).status_code


def test_serve_over_http_has_a_console(place: Place) -> None:
    """The printed URL contains a token for signing in, unless the REST API has its own tokens."""
    config = place.config({})
    with place.serve("--config", config) as (_, messages, _url):
        status = sign_in(next(item for item in messages if "note: console" in item))
    with place.serve("--config", config, "--token-env", "T", T="s3cret-of-the-test") as served:
        guarded = next(item for item in served[1] if "note: console" in item)
    with place.serve("--config", config, "--no-console") as (_, messages, url):
        off = httpx2.get(url.replace("/mcp", "/console"))

    assert 200 == status
    assert guarded.strip().endswith("/console")
    assert 404 == off.status_code


def test_console_command_prints_the_url_of_the_console(place: Place) -> None:
    command = [sys.executable, "-m", "gateway", "console", "--no-browser", "--strategy", "graph"]
    env = {"PATH": str(BIN), "GATEWAY_CACHE_DIR": str(place.cache), "COLUMNS": "200"}
    with subprocess.Popen(
        [*command, "--config", place.config({})], stderr=subprocess.PIPE, text=True, env=env
    ) as process:
        assert process.stderr is not None
        status = sign_in(next(item for item in process.stderr if "note: console" in item))
        process.terminate()
    piped = place.run("serve", "--open-console", "-c", place.config({}))

    assert 200 == status
    assert (2, True) == (piped.code, "--open-console: only for HTTP, so add --http" in piped.err)
