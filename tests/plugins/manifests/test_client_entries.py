"""Configuration with which other MCP clients use this gateway."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gateway.plugins.manifests import client_snippets, is_this_gateway

URL = "http://127.0.0.1:8930/mcp"


def test_client_snippets_contain_an_entry_per_client_for_stdio_and_http(tmp_path: Path) -> None:
    """They contain only references to tokens."""
    snippets = client_snippets(config=tmp_path / "mcp.json", url=URL, needs_token=True)
    texts = {(snippet.client, snippet.transport): snippet.text for snippet in snippets}
    tables = {key: json.loads(text) for key, text in texts.items() if key != ("openai", "stdio")}

    assert 8 == len(snippets)
    for client, key in (("claude", "mcpServers"), ("cursor", "mcpServers"), ("vscode", "servers")):
        assert is_this_gateway(tables[client, "stdio"][key]["gateway"])
        assert URL == tables[client, "http"][key]["gateway"]["url"]
        header = tables[client, "http"][key]["gateway"]["headers"]["Authorization"]
        assert header.startswith("Bearer ${")
    assert "gateway-token" == tables["vscode", "http"]["inputs"][0]["id"]
    assert "stdio" == tables["vscode", "stdio"]["servers"]["gateway"]["type"]
    assert [URL] == [tool["server_url"] for tool in tables["openai", "http"]]
    compile(texts["openai", "stdio"], "snippet", "exec")
    assert str(tmp_path) in texts["openai", "stdio"]


@pytest.mark.parametrize(("config", "url"), [(None, URL), (Path("mcp.json"), "")])
def test_client_snippets_are_left_out_without_a_config_or_url(
    config: Path | None, url: str
) -> None:
    snippets = client_snippets(config=config, url=url)

    assert ["claude", "cursor", "vscode", "openai"] == [snippet.client for snippet in snippets]
    assert {"stdio" if config else "http"} == {snippet.transport for snippet in snippets}
    assert not any("TOKEN" in snippet.text or "token" in snippet.text for snippet in snippets)
