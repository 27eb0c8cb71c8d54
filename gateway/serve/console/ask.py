"""Ask: what a request finds, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gateway.gateway import Gateway
from gateway.serve.console.page import ConsoleOptions, PageView, Place, Visit, page
from gateway.types import SearchResult


@dataclass(frozen=True, slots=True, kw_only=True)
class AskData:
    """One request and its answer."""

    query: str
    result: SearchResult


class AskPage:
    """The page that asks the catalog."""

    place: ClassVar = Place(title="Ask", path="/ask")

    def __init__(self, gateway: Gateway, options: ConsoleOptions) -> None:
        self._gateway = gateway
        self._options = options

    @page("GET", "/ask")
    async def show(self, visit: Visit) -> PageView:
        """Search for ``q``."""
        query = visit.query.get("q", "")
        result = await self._gateway.search(query, caller=visit.caller, task=None)
        return PageView(template="ask.html", title="Ask", data=AskData(query=query, result=result))
