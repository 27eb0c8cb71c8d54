"""Discovery around any function that asks a model with a JSON body.

    async def ask(body): ...            # sends it, returns the reply's JSON
    reply = await Middleware(gateway)(body, ask)

For frameworks and proxies without an OpenAI client. Whole replies only, no streams.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from gateway.chat.events import Observer
from gateway.chat.loop import ClientContext
from gateway.chat.prepared import begin_conversation, parse_reply
from gateway.discovery.approval import Approve
from gateway.errors import InvalidRequestError
from gateway.gateway import Gateway

CallNext = Callable[[dict[str, Any]], Awaitable[Mapping[str, Any]]]


class Middleware:
    """Searches and calls between a request and its reply. Any number of calls at once."""

    def __init__(
        self,
        gateway: Gateway,
        *,
        observer: Observer | None = None,
        approve: Approve | None = None,
    ) -> None:
        self._context = ClientContext.create(gateway, observer=observer, approve=approve)

    async def __call__(self, body: Mapping[str, Any], call_next: CallNext) -> dict[str, Any]:
        """Return the model's last reply to *body*.

        Args:
            body: A request of Chat Completions or of the Responses API.
            call_next: Sends such a body and returns the reply's JSON.

        Raises:
            InvalidRequestError: If *body* asks for a stream, or is no such request.
            LoopError: If a limit of `ChatOptions` is reached.
        """
        if body.get("stream"):
            raise InvalidRequestError("a middleware takes whole replies: leave 'stream' out")
        loop = self._context.begin(begin_conversation(body, self._context))
        with loop.end_after():
            while True:
                answer = await call_next(await loop.next_request())
                reply = parse_reply(answer, loop.conversation)
                final = loop.handle_reply(reply)
                if final is not None:
                    break
                await loop.answer_calls()
            loop.store(final)
            same = final is reply
            return dict(answer) if same else final.model_dump(mode="json", exclude_unset=True)
