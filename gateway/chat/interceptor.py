"""The clients' ``post`` with discovery before it.

All that the SDK builds on ``post`` (`create`, `parse`, `stream`, raw responses) comes here.
What is neither a chat completion nor a response goes straight to the service.

There is one implementation, over a `gateway.chat.transports.Transport` of either kind.
"""

from __future__ import annotations

import copy
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Literal

import httpx2
from openai import BadRequestError, NotGiven, Stream
from openai.types.chat import ChatCompletion
from openai.types.responses import Response
from pydantic import BaseModel

from gateway.chat.accounting import Accounting, attach
from gateway.chat.conversation import ConversationStore
from gateway.chat.formats import ChatConversation, ResponsesConversation
from gateway.chat.loop import ClientContext, Loop
from gateway.chat.streams import ChatStreamMerger, ResponsesStreamMerger, StreamMerger
from gateway.chat.transports import Transport
from gateway.discovery.tool_list import ToolList
from gateway.errors import InvalidRequestError

_RAW_HEADER = "x-stainless-raw-response"
_ONE_REQUEST_HEADERS = frozenset({"idempotency-key"})
"""Headers that identify one request: later turns may not repeat them."""
_FRAMING_HEADERS = frozenset({"content-length", "content-encoding", "transfer-encoding"})
_REPLY_TYPES = (ChatCompletion, Response)
_DONE = b"data: [DONE]\n\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class InterceptedRequest:
    """The arguments that the SDK's own code gives to its client's ``post``."""

    path: Literal["/chat/completions", "/responses"]
    arguments: Mapping[str, Any]
    """All arguments but the path."""
    body: Mapping[str, object]
    """With ``extra_body`` merged in: its tools and messages count as all others."""
    is_raw: bool
    """True if the caller wants the response around the reply."""
    is_stream: bool
    options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def parse(cls, path: str, arguments: Mapping[str, Any]) -> InterceptedRequest | None:
        """Read a request; None if it is none for discovery.

        Raises:
            InvalidRequestError: If the model would be asked without the catalog.
        """
        if path.startswith("/responses?"):
            raise InvalidRequestError(
                "beta.responses is not wrapped, so the model would see no catalog: use "
                "responses, or the bare client as .openai"
            )
        body = arguments.get("body")
        if path not in {"/chat/completions", "/responses"} or not isinstance(body, Mapping):
            return None
        options = dict(arguments.get("options") or {})
        extra = options.pop("extra_json", None)
        headers = {name.lower(): value for name, value in (options.get("headers") or {}).items()}
        return cls(
            path="/responses" if path == "/responses" else "/chat/completions",
            arguments=arguments,
            body={**body, **extra} if isinstance(extra, Mapping) else body,
            is_raw=bool(headers.get(_RAW_HEADER)),
            is_stream=arguments.get("stream") is True,
            options=options,
        )

    def conversation(self, store: ConversationStore) -> ChatConversation | ResponsesConversation:
        """Begin the conversation."""
        if self.path == "/responses":
            return ResponsesConversation(self.body, store)
        return ChatConversation(self.body)

    def merger(self) -> StreamMerger:
        """Return the merger of the first streamed turn."""
        return ResponsesStreamMerger() if self.path == "/responses" else ChatStreamMerger()

    def check(self, tool_list: ToolList) -> None:
        """Refuse a reply in a form that cannot be read here.

        Raises:
            InvalidRequestError: If there is something to discover.
        """
        kind = self.arguments.get("cast_to")
        if not tool_list.is_empty and not (
            isinstance(kind, type) and issubclass(kind, _REPLY_TYPES)
        ):
            raise InvalidRequestError(
                f"post({self.path!r}) cannot give a {kind!r} with found tools: use the SDK's own "
                "create, raw if need be, or the bare client as .openai"
            )

    def turn(self, number: int, body: Mapping[str, object]) -> dict[str, Any]:
        """Return the arguments of turn *number*; replies come as the service wrote them."""
        options = {key: value for key, value in self.options.items() if key != "post_parser"}
        if number > 1 and options.get("headers"):
            options["headers"] = {
                name: value
                for name, value in options["headers"].items()
                if name.lower() not in _ONE_REQUEST_HEADERS
            }
            options.pop("idempotency_key", None)
        return {**self.arguments, "body": body, "options": options}

    def parse_reply(self, final: BaseModel, accounting: Accounting | None) -> Any:
        """Return *final* parsed, as `parse` does, if the caller wants that."""
        parser = self.options.get("post_parser")
        if parser is None or isinstance(parser, NotGiven):
            return final
        parsed = parser(final)
        if accounting is not None:
            attach(parsed, accounting)
        return parsed

    def wrap(self, answer: Any, content: httpx2.Response) -> Any:
        """Return the SDK's response object *answer* over *content* instead."""
        wrapped = copy.copy(answer)
        wrapped.http_response = content
        # What was parsed from one turn must not be given for the whole.
        wrapped._parsed_by_type = {}  # noqa: SLF001  (the SDK has no other way to set it)
        parser = self.options.get("post_parser")
        if parser is not None:
            options = answer._options.model_copy(update={"post_parser": parser})  # noqa: SLF001
            wrapped._options = options  # noqa: SLF001
        return wrapped


class PostInterceptor:
    """A client's ``post``."""

    def __init__(self, transport: Transport, context: ClientContext) -> None:
        self._transport = transport
        self._context = context

    async def post(self, path: str, **arguments: Any) -> Any:
        """Send a request, as the bare client does, with discovery if it asks a model."""
        request = InterceptedRequest.parse(path, arguments)
        if request is None:
            return await self._transport.post(path, **arguments)
        loop = self._context.begin(request.conversation(self._context.store))
        if request.is_stream:
            return await self._open_stream(request, loop)
        with loop.end_after():
            while True:
                answer = await self._ask(request, loop)
                reply = await _parsed(answer) if request.is_raw else answer
                final = loop.handle_reply(reply)
                if final is not None:
                    break
                await self._transport.run(loop.answer_calls)
            loop.store(final)
            if not request.is_raw:
                return request.parse_reply(final, loop.accounting)
            first = answer.http_response
            return request.wrap(answer, first if final is reply else _whole(first, final))

    async def _ask(self, request: InterceptedRequest, loop: Loop[Any]) -> Any:
        body = await self._transport.run(loop.next_request)
        request.check(loop.tool_list)
        try:
            return await self._transport.post(request.path, **request.turn(loop.turn, body))
        except BadRequestError as error:
            if not loop.retry_without_native(str(error)):
                raise
        body = await self._transport.run(loop.next_request)
        return await self._transport.post(request.path, **request.turn(loop.turn, body))

    async def _open_stream(self, request: InterceptedRequest, loop: Loop[Any]) -> Any:
        with loop.end_on_error():
            answer = await self._ask(request, loop)
        first = await _parsed(answer) if request.is_raw else answer
        events = self._events(request, loop, first)
        if not request.is_raw:
            return self._transport.stream(first, events, loop)
        content = self._transport.content(_sse_lines(events))
        return request.wrap(answer, _streamed(answer.http_response, content))

    async def _events(
        self, request: InterceptedRequest, loop: Loop[Any], stream: Any
    ) -> AsyncGenerator[Any, None]:
        merger = request.merger()
        with loop.end_after():
            # Without tools of ours there is one turn, which passes as it comes.
            passes = loop.tool_list.is_empty
            while True:
                async with aclosing(_read(stream)) as events:
                    async for event in events:
                        pushed = list(merger.push(event, loop.tool_list.is_ours))
                        for passed in [event] if passes else pushed:
                            yield passed
                final = None if merger.is_empty else loop.handle_reply(merger.reply())
                if final is not None or merger.is_empty:
                    break
                await self._transport.run(loop.answer_calls)
                merger = merger.next_turn()
                answer = await self._ask(request, loop)
                stream = await _parsed(answer) if request.is_raw else answer
            if final is not None:
                loop.store(final, opened_as=merger.opened_as)
            for passed in () if passes else merger.finish(final):
                yield passed


async def _read(stream: Any) -> AsyncGenerator[Any, None]:
    """Yield the events of a stream of either kind, and close it."""
    if isinstance(stream, Stream):
        with stream:
            for event in stream:
                yield event
    else:
        async with stream:
            async for event in stream:
                yield event


async def _parsed(answer: Any) -> Any:
    """Read a raw response: one kind of the SDK's gives an awaitable, the other the value."""
    reply = answer.parse()
    return await reply if hasattr(reply, "__await__") else reply


def _whole(first: httpx2.Response, final: BaseModel) -> httpx2.Response:
    """Write *final* as the response of one request, with the status and headers of *first*."""
    response = httpx2.Response(
        first.status_code,
        headers=list(_headers(first)),
        content=final.model_dump_json(exclude_unset=True, by_alias=True).encode(),
        request=first.request,
    )
    response.elapsed = first.elapsed
    return response


def _streamed(first: httpx2.Response, content: Any) -> httpx2.Response:
    return httpx2.Response(
        first.status_code, headers=list(_headers(first)), content=content, request=first.request
    )


async def _sse_lines(events: AsyncGenerator[BaseModel, None]) -> AsyncGenerator[bytes, None]:
    """Write chunks or events as the service does."""
    async with aclosing(events):
        async for event in events:
            kind = getattr(event, "type", "")
            head = f"event: {kind}\n" if isinstance(kind, str) and kind else ""
            data = event.model_dump_json(exclude_unset=True, by_alias=True)
            yield f"{head}data: {data}\n\n".encode()
        yield _DONE


def _headers(first: httpx2.Response) -> Iterator[tuple[str, str]]:
    return (item for item in first.headers.multi_items() if item[0] not in _FRAMING_HEADERS)
