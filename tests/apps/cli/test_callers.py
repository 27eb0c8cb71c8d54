"""Callers described by options, on the command line and over pipes."""

from __future__ import annotations

import sys

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from tests.apps.cli.running import TIME, Place

SCOPED: dict[str, object] = {**TIME, "scopes": ["clock"]}
QUERY = "SELECT ?s ?o WHERE { ?s ?p ?o }"
SHOWN = (
    ("tools",),
    ("search", "what time is it"),
    ("search", ""),
    ("discover",),
    ("discover", "what time is it"),
    ("graph", "export"),
    ("graph", "query", QUERY),
    ("graph", "propose", "--dry-run"),
)
NAMED = (
    ("call", "get_current_time"),
    ("call", "time/get_current_time"),
    ("graph", "show", "get_current_time"),
    ("graph", "export", "-f", "dot", "--centre", "time/get_current_time"),
)


def configs(place: Place) -> tuple[str, str]:
    """Return the paths of two configurations: with and without a server that needs a scope."""
    plain = place.hostile()
    servers = {"mcpServers": {"time": SCOPED, "plain": plain}}
    without = {"mcpServers": {"plain": plain}}
    return str(place.put("both.json", servers)), str(place.put("plain.json", without))


@pytest.mark.parametrize("command", SHOWN, ids=" ".join)
def test_commands_show_only_tools_that_their_caller_may_see(
    place: Place, command: tuple[str, ...]
) -> None:
    """A caller with only a tenant has no scope, so it cannot see tools that need one."""
    both, _ = configs(place)
    holder = place.run(*command, "-c", both, "--scope", "clock", "--scope", "other")
    guest = place.run(*command, "-c", both, "--tenant", "acme", "--user", "ada")

    assert "convert_time" in holder.out
    assert [] == [item for item in ("convert_time", "get_current", "time/") if item in str(guest)]


@pytest.mark.parametrize("command", NAMED, ids=" ".join)
def test_commands_answer_a_hidden_name_like_an_unknown_name(
    place: Place, command: tuple[str, ...]
) -> None:
    """The outputs are equal byte for byte."""
    hidden, gone = (
        place.run(*command, "-c", config, "--tenant", "acme") for config in configs(place)
    )

    # The first command also prints notes about the servers that it lists.
    assert gone.err.splitlines()[-1] == hidden.err.splitlines()[-1]
    assert (gone.code, gone.out) == (hidden.code, hidden.out)
    assert hidden.code


def test_graph_commands_without_caller_options_read_the_whole_graph(place: Place) -> None:
    both, _ = configs(place)

    assert "get_current_time" in place.run("graph", "export", "-c", both).out


@pytest.mark.parametrize(("more", "tools"), [((), 1), (("--scope", "clock"), 3)])
async def test_serve_over_pipes_uses_the_caller_that_its_options_describe(
    place: Place, more: tuple[str, ...], tools: int
) -> None:
    both, _ = configs(place)
    command = ["-m", "gateway", "serve", "--expose", "all", "--strategy", "graph", "-c", both]
    env = {"GATEWAY_CACHE_DIR": str(place.cache)}
    parameters = StdioServerParameters(command=sys.executable, args=[*command, *more], env=env)
    async with Client(stdio_client(parameters)) as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        called = await client.call_tool("get_current_time", {"timezone": "Asia/Tokyo"})

    assert tools == len(names)
    assert ("get_current_time" in names) == (not called.is_error) == bool(more)
