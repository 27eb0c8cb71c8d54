"""What a wire format must be able to do for the loop. One implementation an API.

* A `Talk` is one call of the wrapper in one format: it reads the caller's request, grows by what
  the model and we say, and writes the next request.
* Pure: no I/O, no clock. The caller's objects are never changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeVar

from pydantic import BaseModel

from gateway.discovery.call_handler import Answer, ToolCall
from gateway.discovery.tool_list import Offer
from gateway.discovery.wire_formats import Form

Plain = Mapping[str, object]
R = TypeVar("R", bound=BaseModel)
"""A whole reply: `ChatCompletion` or `Response`."""
IsOurs = Callable[[str], bool]
"""Says whether a function of this name is ours to run."""


Loaded = Callable[[Sequence[str]], Sequence[Plain]]
"""Writes the definitions of tools by their exposed names."""


class Talk(Protocol[R]):
    """One call's conversation in one wire format."""

    form: Form
    """How this format writes a function tool."""
    host_tools: Sequence[Plain]
    """The caller's own tools, unchanged."""
    model: str
    """The model that is asked; "" if the request names none."""
    recalled: tuple[str, ...]
    """Tools that were found in a part of the conversation that only the service keeps."""
    owed: tuple[ToolCall, ...]
    """Calls of ours in that part that nobody has answered yet."""
    demanded: tuple[str, ...]
    """Names that the caller's ``tool_choice`` speaks of."""

    def refuse(self) -> None:
        """Refuse what cannot work with discovery.

        Raises:
            InvalidRequestError: With what to do instead.
        """

    def history(self) -> Sequence[Plain]:
        """Give the conversation so far as chat messages."""

    def body(self, turn: int, offer: Offer) -> dict[str, object]:
        """Write the request of *turn*, counted from 1."""

    def readable(self, reply: object) -> bool:
        """Say whether *reply* is one: some services send an error, or a page, as if it were."""

    def calls(self, reply: R) -> tuple[ToolCall, ...]:
        """Give every call of *reply* that somebody here must answer, in order."""

    def trimmed(self, reply: R, is_ours: IsOurs) -> R:
        """Give *reply* without calls of ours; itself if there are none."""

    def grow(self, reply: R, answers: Sequence[Answer], loaded: Loaded) -> None:
        """Add *reply* and the answers to its calls; *loaded* writes the tools of a search."""

    def repay(self, answers: Sequence[Answer], loaded: Loaded) -> None:
        """Add the answers to what was owed."""

    def keep(self, final: R, owed: tuple[ToolCall, ...], *, opened: str = "") -> None:
        """Remember what the next request will not tell.

        Args:
            final: What goes to the caller.
            owed: Calls of ours that were left out of it.
            opened: The id under which a stream began.
        """

    def gained(self) -> tuple[Plain, ...]:
        """Give what the conversation gained since the caller's request."""

    def text(self, reply: R) -> str:
        """Give what *reply* says; "" for nothing."""

    def metered(self, reply: R) -> BaseModel | None:
        """Give the usage that *reply* reports."""
