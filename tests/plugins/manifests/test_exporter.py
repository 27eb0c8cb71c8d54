"""Export of servers and tools without secrets."""

from __future__ import annotations

import json

import pytest

from gateway.config.mcp_json import parse_manifest
from gateway.errors import ConfigError, InvalidRequestError
from gateway.gateway import Gateway
from gateway.plugins.manifests import export_servers, export_virtual_server, servers_of
from gateway.sources import Prefix
from gateway.types import Entity
from tests.conftest import OpenGateway
from tests.fakes import Shelf, tool

SECRETS = (
    "ghp_" + "a1B2" * 9,
    "hunter2",
    "Zk3" * 9 + "Qx1v",
    "p4ss",
    "s3same",
    "sk-" + "x1" * 12,
    "t0ps",
)
CONFIG = {
    "mcpServers": {
        "git hub": {
            "command": "npx",
            "args": ["-y", "server", "--api-key", SECRETS[1], "--port", "80"],
            "env": {
                "GITHUB": SECRETS[0],
                "LEVEL": "debug",
                "KEY": "${GIT_KEY}",
                "OPAQUE": SECRETS[2],
                "OLD": f"${{OLD:-{SECRETS[4]}}}",
                "MODE": "${MODE:-true}",
                "TWO": f"${{A}}{SECRETS[5]}",
            },
            "tools": {"allow": ["get_*"]},
            "apiKey": SECRETS[4],
        },
        "wiki": {
            "url": f"https://me:{SECRETS[3]}@wiki.example/mcp",
            "auth": {"type": "oauth", "client_secret": SECRETS[4], "callback_port": 81},
            "mirror": f"https://me:{SECRETS[3]}@wiki.example/mcp?api_key={SECRETS[5]}&token=t0ps",
            "tags": ["docs"],
        },
        "other": {"command": "other"},
    },
    "virtualServers": {"work": {"tools": {"bug": "git-hub/create", "page": {"tool": "wiki/get"}}}},
}


def test_exported_servers_have_references_instead_of_secrets() -> None:
    export = export_servers(json.dumps(CONFIG), {"git-hub", "wiki", "lost"}, where="mcp.json")
    text = json.dumps(export.document)

    assert not [secret for secret in SECRETS if secret in text]
    assert ["git hub", "wiki"] == [*export.document["mcpServers"]]  # type: ignore[misc]  # a table
    hub = export.document["mcpServers"]["git hub"]  # type: ignore[index]  # a table
    assert ["-y", "server", "--api-key", "${GIT_HUB_API_KEY}", "--port", "80"] == hub["args"]
    assert {
        "GITHUB": "${GIT_HUB_GITHUB}",
        "LEVEL": "debug",
        "KEY": "${GIT_KEY}",
        "OPAQUE": "${GIT_HUB_OPAQUE}",
        "OLD": "${OLD}",
        "MODE": "${MODE:-true}",
        "TWO": "${A}${GIT_HUB_TWO}",
    } == hub["env"]
    assert {"allow": ["get_*"]} == hub["tools"]
    assert "https://me:${WIKI_URL}@wiki.example/mcp" in text
    assert '"client_secret": "${WIKI_CLIENT_SECRET}", "callback_port": 81' in text
    assert ("lost",) == export.missing
    assert {"GIT_HUB_API_KEY", "GIT_HUB_GITHUB", "GIT_HUB_OPAQUE", "GIT_HUB_TWO", "WIKI_URL"} < {
        variable.variable for variable in export.variables
    }


def test_exported_virtual_server_includes_its_upstreams() -> None:
    export = export_servers(json.dumps(CONFIG), {"work"}, where="mcp.json")

    assert ["git hub", "wiki"] == [*export.document["mcpServers"]]  # type: ignore[misc]  # a table
    assert CONFIG["virtualServers"] == export.document["virtualServers"]
    assert () == export.missing


async def entities_of(gateway: Gateway) -> tuple[Entity, ...]:
    return (await gateway.catalog.list()).entities


async def test_exported_virtual_server_contains_the_chosen_tools(open_gateway: OpenGateway) -> None:
    """It refers to tools by their names on the upstream servers, because other gateways do not know
    the exposed names.
    """
    gateway = open_gateway()
    shelf = Shelf([tool("send"), tool("wipe")])
    gateway.add_server("mail", server=shelf.server, transforms=(Prefix("m_"),))
    gateway.add_virtual_server("team", {"tidy": "mail/wipe"})
    chosen = [item for item in await entities_of(gateway) if item.name != "m_wipe"]

    document = export_virtual_server("work", chosen, gateway.original)
    table = parse_manifest({"mcpServers": {}, **document}).virtual["work"]
    gateway.add_virtual_server("work", table.tools)
    results = [await gateway.invoke(f"work/{name}", {}) for name in table.tools]

    assert {"work": {"tools": {"m_send": "mail/send", "tidy": "mail/wipe"}}} == document[
        "virtualServers"
    ]
    assert [False, False] == [result.is_error for result in results]
    assert frozenset({"mail", "team"}) == servers_of(chosen)


async def test_export_of_a_virtual_server_needs_tools_and_a_valid_name(
    open_gateway: OpenGateway,
) -> None:
    gateway = open_gateway([tool("send")])
    chosen = await entities_of(gateway)
    others = [item for item in chosen if item.kind != "tool"]

    with pytest.raises(InvalidRequestError, match="at least one"):
        export_virtual_server("work", others, gateway.original)
    with pytest.raises(ConfigError):
        export_virtual_server("a/b", chosen, gateway.original)
