"""What must be remembered of conversations that the service keeps. Bounded; for any thread.

With ``previous_response_id`` or ``conversation`` the messages are not in the request. So what was
found, and what we still have to answer, is kept here by that id. After a restart it is gone: found
tools are then called through `call_tool`, or searched for again.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass

from gateway.discovery.call_handler import ToolCall

CONVERSATIONS = 1024
"""How many are remembered; the least recently used one goes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """Where a conversation stands."""

    shown: tuple[str, ...] = ()
    """The found tools that the model saw last, in order."""
    owed: tuple[ToolCall, ...] = ()
    """Calls of our tools that the caller was not shown, and whose answers the service waits for."""
    goes_on_from: str = ""
    """The response that the service knows, if a stream began under another id."""


class Chains:
    """The links of one client, by response or conversation id."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._links: OrderedDict[str, Link] = OrderedDict()

    def put(self, name: str, link: Link) -> None:
        """Remember *link* under *name*."""
        with self._lock:
            self._links[name] = link
            self._links.move_to_end(name)
            while len(self._links) > CONVERSATIONS:
                self._links.popitem(last=False)

    def get(self, name: str) -> Link:
        """Give what is known of *name*; an empty link if it was never seen."""
        with self._lock:
            found = self._links.get(name)
            if found is None:
                return Link()
            self._links.move_to_end(name)
            return found
