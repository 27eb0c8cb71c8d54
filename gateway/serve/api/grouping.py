"""A result -> the list and the groups that clients of registries read. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import repeat

import numpy as np

from gateway.search.grouped import lifted
from gateway.search.spread import words_of
from gateway.serve.api import rows
from gateway.serve.api.answers import (
    Grouped,
    MatchingTool,
    Note,
    SearchMode,
    ServerRow,
    ToolRow,
    VirtualServerRow,
)
from gateway.serve.api.asked import SemanticSearch
from gateway.serve.api.rows import Hit
from gateway.serve.api.views import View
from gateway.types import Filters, RankingMode, SearchResult
from graphs.lexical.analysis import tokens

MODES: Mapping[RankingMode, SearchMode] = {
    "hybrid": "hybrid",
    "vector": "vector",
    "lexical": "lexical-only",
    "graph": "graph",
    "browse": "browse",
    "empty": "empty",
}
"""What really ranked, in the words of registries."""
_SERVERS = frozenset({"server", "virtual_server"})
_TOOL = frozenset({"tool"})
_NAMED = _SERVERS | {"agent", "skill", "tool"}


def hits_of(view: View, result: SearchResult, limit: int) -> list[Hit]:
    """Give who is shown of a result, at most *limit*.

    Args:
        view: Where they are looked up; who is gone meanwhile is left out.
        result: Of a search for so many places; who only browses sees all of them alike.
        limit: How many are wanted.
    """
    displays = result.displays or repeat(1.0)
    told = zip(result.matches[:limit], displays, strict=False)
    found = ((view.entity(match.id), match, display) for match, display in told)
    return [
        Hit(entity=entity, match=match, display=display)
        for entity, match, display in found
        if entity is not None
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What was found, on its way to the client."""

    view: View
    filters: Filters
    asked: SemanticSearch
    hits: Sequence[Hit]

    def grouped(self, result: SearchResult, ranking: str) -> Grouped:
        """Give the list and its groups."""
        groups: defaultdict[str, list[Hit]] = defaultdict(list)
        for hit in self.hits:
            groups[hit.entity.kind].append(hit)
        tools = self._lifted([hit for hit in self.hits if hit.entity.kind in _SERVERS])
        fields = self.asked.metadata_fields
        servers = [self._server(hit, tools) for hit in groups["server"]]
        virtual = [self._virtual(hit, tools) for hit in groups["virtual_server"]]
        agents = [rows.agent(hit, fields) for hit in groups["agent"]]
        skills = [rows.skill(hit, fields) for hit in groups["skill"]]
        custom = [rows.custom(hit, fields) for hit in self.hits if hit.entity.kind not in _NAMED]
        every = self._tools(groups["tool"], tools)
        return Grouped(
            query=self.asked.query,
            search_mode=MODES[result.mode],
            ranking=ranking,
            confidence=round(max((hit.match.confidence for hit in self.hits), default=0.0), 4),
            results=[rows.result(hit, rank) for rank, hit in enumerate(self.hits, 1)],
            servers=servers,
            tools=every,
            agents=agents,
            skills=skills,
            virtual_servers=virtual,
            custom=custom,
            total_servers=len(servers),
            total_tools=len(every),
            total_agents=len(agents),
            total_skills=len(skills),
            total_virtual_servers=len(virtual),
            total_custom=len(custom),
            diagnostics=[Note(stage=each.stage, code=each.code) for each in result.diagnostics],
        )

    def _open(self, server: str) -> list[int]:
        """Where the tools of a server stand that may be seen; its tags are theirs."""
        # Only the kind and the tags differ: whoever may not see a tool does not see it here.
        mask = self.view.snapshot.mask(replace(self.filters, kinds=_TOOL, tags=frozenset()))
        spots = np.asarray(self.view.tools.get(server, ()), dtype=np.intp)
        found: list[int] = spots[mask[spots]].tolist()
        return found

    def _lifted(self, owners: Sequence[Hit]) -> Mapping[int, float]:
        """Say which tools of the matched servers hold words of the query, and how much of it."""
        query = words_of(tokens(self.asked.query))
        spots = [at for hit in owners for at in self._open(hit.entity.id)] if query else []
        told = [self.view.worded(at) for at in spots]
        found = lifted(told, query, limit=self.asked.max_results)
        return {spots[each.place]: each.display for each in found}

    def _matching(self, hit: Hit, tools: Mapping[int, float]) -> list[MatchingTool]:
        entities = self.view.snapshot.entities
        own = frozenset(self.view.tools.get(hit.entity.id, ()))
        return [rows.matching(entities[at], score) for at, score in tools.items() if at in own]

    def _server(self, hit: Hit, tools: Mapping[int, float]) -> ServerRow:
        return rows.server(
            hit,
            self.asked.metadata_fields,
            num_tools=len(self._open(hit.entity.id)),
            matching=self._matching(hit, tools),
        )

    def _virtual(self, hit: Hit, tools: Mapping[int, float]) -> VirtualServerRow:
        return rows.virtual_server(
            hit,
            self.asked.metadata_fields,
            num_tools=len(self._open(hit.entity.id)),
            matching=self._matching(hit, tools),
            backends=rows.backends(hit.entity),
        )

    def _tools(self, hits: Sequence[Hit], tools: Mapping[int, float]) -> list[ToolRow]:
        """Give the tools that were found, then those that their servers brought along."""
        found = [rows.tool(hit.entity, display=hit.display, match=hit.match) for hit in hits]
        if "tool" not in self.filters.kinds:
            return found
        known = {row.id for row in found}
        entities = self.view.snapshot.entities
        more = ((entities[at], score) for at, score in tools.items())
        return found + [
            rows.tool(entity, display=score) for entity, score in more if entity.id not in known
        ]
