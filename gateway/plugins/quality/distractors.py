"""Tools of other people, to see what is still found among many more. Pure but for the file."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

from gateway.errors import ConfigError
from gateway.types import Entity, InvokeResult, JsonObject, ToolDefinition
from gateway.types.listing import Listing

_TEXTS: Mapping[str, str] = {
    "list": "List or search the {0}s of {1}, newest first.",
    "get": "Get one {0} of {1} with all its details.",
    "create": "Create a {0} in {1}.",
    "update": "Change an existing {0} of {1}.",
    "delete": "Delete a {0} from {1} for good.",
}


class FixedSource:
    """A server that only lists; nothing calls it.

    Args:
        server: Its name.
        tools: What it lists.
    """

    trusted = True
    """It is ranked as it is."""

    def __init__(self, server: str, tools: Collection[ToolDefinition]) -> None:
        self.server = server
        self._tools = tuple(tools)

    async def list_tools(self) -> Listing:
        """Return the tools."""
        return Listing(definitions=self._tools)

    async def call(self, tool: str, arguments: JsonObject, *, tool_id: str) -> InvokeResult:
        """Refuse."""
        del arguments
        raise ConfigError(f"{tool!r} ({tool_id}) is only listed")

    async def close(self) -> None:
        """Nothing to let go of."""


def as_sources(tools: Iterable[Entity]) -> tuple[FixedSource, ...]:
    """Return the servers of *tools*, to be listed once more in another gateway."""
    by_server: defaultdict[str, list[ToolDefinition]] = defaultdict(list)
    for tool in tools:
        by_server[tool.server].append(tool.definition)
    return tuple(FixedSource(server, listed) for server, listed in by_server.items())


def distractors(count: int, *, without: Collection[str] = ()) -> tuple[FixedSource, ...]:
    """Return servers of ``distractors.md`` with *count* tools in all, or fewer if it holds fewer.

    Args:
        count: How many tools.
        without: The names of servers that are there already.
    """
    text = Path(__file__).with_name("distractors.md").read_text(encoding="utf-8")
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    sources = []
    for server, about, nouns in rows[2:]:
        tools = [*_tools(about, nouns.split(", "))][:count]
        if server not in without and tools:
            sources.append(FixedSource(server, tools))
            count -= len(tools)
    return tuple(sources)


def _tools(about: str, nouns: Collection[str]) -> Iterator[ToolDefinition]:
    for noun in nouns:
        name = noun.replace(" ", "_").replace("-", "_").lower()
        for verb, text in _TEXTS.items():
            key = "query" if verb == "list" else "title" if verb == "create" else f"{name}_id"
            yield ToolDefinition(
                name=f"{verb}_{name}{'s' if verb == 'list' else ''}",
                description=text.format(noun, about),
                input_schema={
                    "type": "object",
                    "properties": {key: {"type": "string"}},
                    "required": [key],
                },
            )
