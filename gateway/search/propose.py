"""Who proposes edges, and what comes of it; `proposing` asks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import graphs


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposerReply:
    """What a model answered, asked once for edges."""

    text: str
    input_tokens: int | None = None
    output_tokens: int | None = None


@runtime_checkable
class Proposer(Protocol):
    """Says which tools belong together. May be called from any task of the gateway's own loop."""

    @property
    def model_id(self) -> str:
        """Names model and endpoint."""
        ...

    async def propose(self, tools: str) -> ProposerReply:
        """Answer a list of tools with lines ``A --requires--> B``.

        Raises:
            Exception: Anything; the batch is then left out, with a notice.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposed:
    """What came of asking."""

    documents: tuple[graphs.Document, ...]
    """One a server with an edge; their paths are the servers' names."""
    notices: tuple[str, ...]
    """What was dropped and why, and which batches could not be asked about."""
    requests: int
    """How many requests were sent, the failed ones included."""
    input_tokens: int
    output_tokens: int
    """As the endpoint counts them; 0 where it does not."""
