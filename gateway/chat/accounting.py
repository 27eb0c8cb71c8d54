"""What one call of the wrapper cost and did. Sums of them tell of a conversation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pydantic import BaseModel

from gateway.values import dataclass

_NAME = "gateway"


@dataclass(frozen=True, slots=True, kw_only=True)
class Accounting:
    """What one call of the wrapper did, or several of them (`+`)."""

    calls: int = 1
    """Calls of the wrapper."""
    turns: int = 0
    """Requests to the model."""
    searches: int = 0
    tool_calls: int = 0
    """Calls of tools of the catalog."""
    errors: int = 0
    """Those of both that were answered with an error."""
    definition_tokens: int = 0
    """Estimated tokens of all tool definitions sent, over all turns; the host's own too."""
    catalog_tokens: int = 0
    """What sending every schema of the catalog with every turn would have been."""
    prefix_bytes: int = 0
    """Bytes that each request but the first shares with the one before, from the beginning: tools
    first, then messages, as services read them."""
    request_bytes: int = 0
    """Bytes of those requests."""
    prompt_tokens: int = 0
    """As the service reports them, over all turns; so are the next two."""
    completion_tokens: int = 0
    cached_tokens: int = 0
    messages: tuple[Mapping[str, object], ...] = ()
    """What the conversation gained before the reply: the model's calls of ours and their answers.
    A host that keeps them in its own messages, before the reply, keeps the found tools too."""
    response_id: str = ""
    """Of the Responses API: the response that the service would go on from."""

    @property
    def definition_share(self) -> float:
        """Tokens of definitions sent against all schemas, 0 and up; 0.0 for an empty catalog."""
        return self.definition_tokens / self.catalog_tokens if self.catalog_tokens else 0.0

    @property
    def prefix_stability(self) -> float:
        """The share of the requests' bytes that a prompt cache could know, 0 to 1; 1.0 if there
        was one request alone.
        """
        return self.prefix_bytes / self.request_bytes if self.request_bytes else 1.0

    def __add__(self, other: Accounting) -> Accounting:
        """Add what a later call did; its messages follow, its response is the last."""
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
