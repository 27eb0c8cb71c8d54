"""haystack-ai: the search tool of `SearchableToolset`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from haystack.tools import SearchableToolset, Tool

from benchmarks.peering.wire import Setting, serve
from benchmarks.peering.wire import Tool as Given

_FOUND = re.compile(r"tool\(s\): (.*?)\. ")


class Haystack:
    """BM25 over name and description."""

    def __init__(self, setting: Setting) -> None:
        del setting
        self._toolset = SearchableToolset([], top_k=10)
        self._names: set[str] = set()

    async def build(self, tools: Sequence[Given]) -> str:
        """Index the tools whose schemas it takes; a bad one would end it."""
        taken: list[Tool] = []
        for tool in tools:
            try:
                taken.append(
                    Tool(
                        name=tool.name,
                        description=tool.description,
                        parameters=tool.input_schema,
                        function=_never,
                    )
                )
            except ValueError:
                continue
        self._names = {tool.name for tool in taken}
        self._toolset = SearchableToolset(taken, top_k=10)
        self._toolset.warm_up()
        refused = len(tools) - len(taken)
        return f"{refused} tools refused for their schemas" if refused else ""

    async def search(self, text: str, limit: int) -> Sequence[str]:
        """Ask as a model would, and read the names from its sentence."""
        search = self._toolset._bootstrap_tool  # noqa: SLF001  (no public door)
        answer = str(search.function(tool_keywords=text, k=limit))
        found = _FOUND.search(answer + " ")
        names = found.group(1).split(", ") if found else []
        return [name for name in names if name in self._names]


def _never(**arguments: object) -> None:
    del arguments


if __name__ == "__main__":
    serve(Haystack, package="haystack-ai")
