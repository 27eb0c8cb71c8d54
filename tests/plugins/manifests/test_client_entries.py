"""What stands in other clients to use this gateway."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gateway.plugins.manifests import client_snippets, is_this_gateway

URL = "http://127.0.0.1:8930/mcp"


def test_each_client_gets_an_entry_for_this_machine_and_for_the_address(tmp_path: Path) -> None:
    """In its own format; a token is only referred to."""
    made = client_snippets(config=tmp_path / "mcp.json", url=URL, needs_token=True)
    texts = {(each.client, each.transport): each.text for each in made}
    tables = {key: json.loads(text) for key, text in texts.items() if key != ("openai", "stdio")}

    assert 8 == len(made)
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
def test_what_is_not_there_is_left_out(config: Path | None, url: str) -> None:
    """A gateway in a program has no configuration; one over stdio has no address."""
    made = client_snippets(config=config, url=url)

    assert ["claude", "cursor", "vscode", "openai"] == [each.client for each in made]
    assert {"stdio" if config else "http"} == {each.transport for each in made}
    assert not any("TOKEN" in each.text or "token" in each.text for each in made)
