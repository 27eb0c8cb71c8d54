"""One streamed turn of the Responses API: what may go to the caller, and under which number. No
I/O.

* Events go on as they come. Those of calls of ours do not, and so what stands behind an item of
  ours is numbered anew.
* The turns of one call of the wrapper look like one response: one beginning, one end, one id. The
  beginning waits for the first thing that is said, so that silent turns leave no trace; a turn
  that said something and then called has lent its id to the whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from openai.types.responses import Response, ResponseStreamEvent
from openai.types.responses.response_output_item import ResponseOutputItem
from pydantic import BaseModel

from gateway.chat.wire import IsOurs
from gateway.discovery.wire_formats import NATIVE_SEARCH

_BEGINNINGS = frozenset({"response.created", "response.queued", "response.in_progress"})
_ENDS = frozenset({"response.completed", "response.incomplete", "response.failed"})


class JoinedResponse:
    """The events of one turn."""

    def __init__(
        self, *, number: int = 0, items: Sequence[BaseModel] = (), began_as: str = ""
    ) -> None:
        """Begin a turn.

        Args:
            number: That of its first event.
            items: What went to the caller, whole, in turns before this one.
            began_as: The id that the caller was given; "" if nothing has begun.
        """
        self._number = number
        self._items = tuple(items)
        self._began_as = began_as
        self._places: dict[int, int] = {}
        self._ours: set[int] = set()
        self._done: dict[int, BaseModel] = {}
        self._beginning: list[ResponseStreamEvent] = []
        self._end: ResponseStreamEvent | None = None

    def again(self) -> JoinedResponse:
        """Begin the turn after this one."""
        items = (*self._items, *(self._done[place] for place in sorted(self._done)))
        return JoinedResponse(number=self._number, items=items, began_as=self._began_as)

    @property
    def empty(self) -> bool:
        """Whether the turn never ended: there is nothing to take."""
        return self._end is None

    @property
    def began_as(self) -> str:
        """The id that the caller was given."""
        return self._began_as

    def feed(self, event: ResponseStreamEvent, is_ours: IsOurs) -> Iterator[ResponseStreamEvent]:
        """Take one event and give what may be passed on."""
        if event.type in _BEGINNINGS:
            self._beginning.append(event)
            return
        if event.type in _ENDS:
            self._end = event
            return
        place = getattr(event, "output_index", None)
        if not isinstance(place, int):
            yield from self._opened()
            yield self._numbered(event)
            return
        if event.type == "response.output_item.added" and _is_ours(event.item, is_ours):
            self._ours.add(place)
        if place in self._ours:
            return
        yield from self._opened()
        new = self._places.setdefault(place, len(self._items) + len(self._places))
        if event.type == "response.output_item.done":
            self._done[new] = event.item
        yield self._numbered(event, output_index=new)

    def reply(self) -> Response:
        """Give the whole turn as if it had not been streamed."""
        end = self._end
        if end is None or not isinstance(found := getattr(end, "response", None), Response):
            raise RuntimeError("a turn without an end has no reply")
        return found

    def ending(self, final: Response) -> Iterator[ResponseStreamEvent]:
        """Give the end, now that *final* goes to the caller."""
        end = self._end
        if end is None:
            return
        yield from self._opened()
        told = {"output": [*self._items, *final.output], "id": self._began_as or final.id}
        yield self._numbered(end, response=final.model_copy(update=told))

    def rest(self) -> Iterator[ResponseStreamEvent]:
        """Give what waited, of a turn that was broken off."""
        yield from self._opened()

    def _opened(self) -> Iterator[ResponseStreamEvent]:
        """Give the beginning that waits; of a later turn only if nothing has begun yet."""
        if not self._began_as:
            for event in self._beginning:
                self._began_as = str(getattr(getattr(event, "response", None), "id", ""))
                yield self._numbered(event)
        self._beginning = []

    def _numbered(self, event: ResponseStreamEvent, **update: object) -> ResponseStreamEvent:
        number, self._number = self._number, self._number + 1
        if not update and getattr(event, "sequence_number", None) == number:
            return event
        return event.model_copy(update={"sequence_number": number, **update})


def _is_ours(item: ResponseOutputItem, is_ours: IsOurs) -> bool:
    if item.type == "tool_search_call":
        return item.execution == "client" and is_ours(NATIVE_SEARCH)
    return item.type == "function_call" and is_ours(item.name)
