"""The conversations that the service keeps: by response, and by conversation."""

from __future__ import annotations

from collections.abc import Mapping

from gateway.errors import InvalidRequestError
from gateway.types import JsonObject


class Kept:
    """Remembers the items of every response, as the real service does for a while."""

    def __init__(self) -> None:
        self._items: dict[str, list[object]] = {}

    def whole(self, body: JsonObject) -> list[object]:
        """Give the items of a request behind those that it goes on from.

        Raises:
            InvalidRequestError: If there is no such response.
        """
        given = body.get("input")
        if isinstance(given, str):
            given = [{"role": "user", "content": given}]
        items = list(given) if isinstance(given, list) else []
        previous = body.get("previous_response_id")
        if isinstance(previous, str) and previous not in self._items:
            raise InvalidRequestError(f"Previous response with id '{previous}' not found.")
        before = self._items.get(str(previous or _name(body)), [])
        return [*before, *items]

    def keep(self, body: JsonObject, name: str, items: list[object]) -> None:
        """Remember *items*, the whole of a conversation, unless the request forbids it."""
        if body.get("store") is not False:
            self._items[name] = items
        if _name(body):
            self._items[_name(body)] = items


def _name(body: JsonObject) -> str:
    conversation = body.get("conversation")
    if isinstance(conversation, Mapping):
        conversation = conversation.get("id")
    return conversation if isinstance(conversation, str) else ""
