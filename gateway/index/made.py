"""What a build of the index gives, and who makes one."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import graphs
from gateway.index.snapshot import Snapshot
from gateway.sources.registry import ListResult, Registration
from gateway.types import Diagnostic


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A snapshot, and what it cost."""

    snapshot: Snapshot
    complete: bool = True
    """Whether every text has the vector that it should have."""
    early: bool = False
    """Whether it lacks vectors because nobody was to wait for them."""
    embedded: int = 0
    """How many texts were sent to the embedder."""
    saved: bool = False
    """Whether it was read as an earlier process saved it."""
    tokens: int = 0
    """What the embedder reported for them."""


class Make(Protocol):
    """Makes each snapshot from the one before; see `gateway.index.builder.Making`."""

    def __call__(
        self,
        registrations: Mapping[str, Registration],
        listed: Mapping[str, ListResult],
        documents: Sequence[graphs.Document],
        *,
        version: int,
        diagnostics: Sequence[Diagnostic],
        most: int | None = None,
    ) -> Awaitable[Made]:
        """Make the next snapshot.

        Args:
            registrations: The sources.
            listed: What each of them listed.
            documents: The host's own graph documents.
            version: The number of this build.
            diagnostics: What is known to be wrong so far.
            most: If more texts than this have to be embedded, the snapshot is made with the vectors
                that are kept, and is `Made.early`; None sets no limit.
        """
        ...

    def embed(self) -> Awaitable[object]:
        """Embed what the last snapshot lacks, for the next one; what fails is not tried again."""
        ...
