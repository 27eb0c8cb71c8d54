"""What one call of the wrapper did and cost; sums of them describe a conversation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pydantic import BaseModel

_NAME = "gateway"


@dataclass(frozen=True, slots=True, kw_only=True)
class Accounting:
    """What one call of the wrapper did, or several of them (`+`)."""

    calls: int = 1
    """How many calls of the wrapper."""
    turns: int = 0
    """Requests to the model."""
    searches: int = 0
    tool_calls: int = 0
    """Calls of tools of the catalog."""
    errors: int = 0
    """Searches and tool calls that were answered with an error."""
    definition_tokens: int = 0
    """Estimated tokens of all tool definitions sent, over all turns, the host's own included."""
    catalog_tokens: int = 0
    """Estimated tokens if every schema of the catalog had been sent with every turn."""
    prefix_bytes: int = 0
    """Bytes at the beginning that each request but the first shares with the one before: tools
    first, then messages, as services read them."""
    request_bytes: int = 0
    """All bytes of those requests."""
    prompt_tokens: int = 0
    """As the service reports them, over all turns; so are the next two."""
    completion_tokens: int = 0
    cached_tokens: int = 0
    messages: tuple[Mapping[str, object], ...] = ()
    """What the conversation gained before the reply: the model's calls of our tools, with answers.
    A host that puts them into its own messages, before the reply, keeps the found tools."""
    response_id: str = ""
    """In the Responses API: the response that the service would go on from."""

    @property
    def definition_share(self) -> float:
        """Tokens of definitions sent, as a share of all schemas, >= 0; 0.0 for an empty catalog."""
        return self.definition_tokens / self.catalog_tokens if self.catalog_tokens else 0.0

    @property
    def prefix_stability(self) -> float:
        """The share of the requests' bytes that a prompt cache could know, 0 to 1; 1.0 if there was
        only one request.
        """
        return self.prefix_bytes / self.request_bytes if self.request_bytes else 1.0

    def __add__(self, other: Accounting) -> Accounting:
        """Add what a later call did: its messages come after ours, its response is the last."""
        summed = {
            name: getattr(self, name) + getattr(other, name)
            for name in self.__slots__
            if name != "response_id"
        }
        return replace(self, **summed, response_id=other.response_id or self.response_id)


def attach(reply: BaseModel, accounting: Accounting) -> None:
    """Let *reply* carry *accounting* as ``reply.gateway``: no field, so it is never sent."""
    reply.__dict__[_NAME] = accounting


def accounting_of(reply: object) -> Accounting | None:
    """Read ``reply.gateway``, typed; None for a reply that did not come through the wrapper."""
    found = getattr(reply, _NAME, None)
    return found if isinstance(found, Accounting) else None
