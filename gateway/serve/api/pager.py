"""The pages of the API's lists.

A cursor holds the place of the last entity that its reader saw, and which list that is of. So what
is added or removed between two pages moves nothing else to another page, and what is hidden leaves
no trace in it.
"""

from __future__ import annotations

import base64
from typing import TypeAlias

from gateway.runtime.text import digest
from gateway.serve.api.models import PageMetadata, PageQuery
from gateway.serve.api.problems import RefusedError, RequestFault

Place: TypeAlias = tuple[float, str]
"""What lists are sorted by: a number, then the id."""


class Pager:
    """Reads and writes the cursors of one list.

    Args:
        name: Of the list.
        request: Its parameters.

    Raises:
        RefusedError: 404, if the cursor is none, or of a list of another name or parameters.
    """

    def __init__(self, name: str, request: PageQuery) -> None:
        parameters = request.model_dump(exclude={"cursor", "limit"})
        self._list_digest = digest(f"{name} {parameters}")
        self.start: Place = self._decode(request.cursor) if request.cursor else (-float("inf"), "")
        """The place that the page follows."""

    def metadata(self, count: int, last: Place | None) -> PageMetadata:
        """Return what a page of *count* entities says of itself.

        Args:
            count: Of this page.
            last: The place of its last entity, if another one follows.
        """
        text = f"{self._list_digest}\n{last[0]!r}\n{last[1]}" if last else ""
        cursor = base64.urlsafe_b64encode(text.encode("utf-8", "surrogatepass")).decode()
        return PageMetadata(count=count, next_cursor=cursor or None)

    def _decode(self, cursor: str) -> Place:
        try:
            raw = base64.b64decode(cursor, altchars=b"-_", validate=True)
            text = raw.decode("utf-8", "surrogatepass")
            list_digest, number, last = text.split("\n", 2)
            if list_digest == self._list_digest:
                return float(number), last
        except ValueError:
            pass
        detail = "there is no such page: the cursor is of another list, or was changed; begin again"
        fault = RequestFault(where="?cursor", detail=detail)
        raise RefusedError(404, "unknown_cursor", detail, errors=[fault])
