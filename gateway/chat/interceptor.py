"""A ``post`` method for OpenAI clients that adds discovery, for blocking and async clients.

Every method of the SDK that sends (`create`, `parse`, `stream`, raw responses) calls ``post``.

All code here is async. With a blocking client the requests block, so the coroutines never suspend,
and `_run_blocking` completes them in one step.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

import httpx2
from openai import AsyncOpenAI, AsyncStream, BadRequestError, NotGiven, OpenAI, Stream
from openai.types.chat import ChatCompletion
from openai.types.responses import Response
from pydantic import BaseModel

from gateway.chat.accounting import Accounting, attach
from gateway.chat.chat_completions import ChatStreamMerger
from gateway.chat.loop import ClientContext, Loop
from gateway.chat.responses import ResponsesStreamMerger
from gateway.embed.openai import endpoint_of
from gateway.errors import InvalidRequestError
from gateway.runtime.library_logs import quiet_libraries

E = TypeVar("E", bound=BaseModel)
T = TypeVar("T")
_RAW_HEADER = "x-stainless-raw-response"
_IDEMPOTENCY_HEADER = "idempotency-key"
"""Header that is removed from later turns, because each request needs a key of its own."""
_FRAMING_HEADERS = frozenset({"content-length", "content-encoding", "transfer-encoding"})
_REPLY_TYPES = (ChatCompletion, Response)
_DONE = b"data: [DONE]\n\n"


def intercepted_post(openai: OpenAI | AsyncOpenAI, context: ClientContext) -> Callable[..., Any]:
    """Return the ``post`` method for a wrapper of *openai*."""

    async def post(path: str, **arguments: Any) -> Any:
        if path.startswith("/responses?"):
            raise InvalidRequestError(
                "beta.responses is not wrapped, so the model would see no catalog: use "
                "responses, or the bare client as .openai"
            )
        is_for_model = path in {"/chat/completions", "/responses"}
        if not is_for_model or not isinstance(arguments.get("body"), Mapping):
            return await _resolve(openai.post(path, **arguments))
        call = InterceptedCall(openai, context, path, arguments)
        return await (call.stream() if arguments.get("stream") is True else call.answer())

    if isinstance(openai, AsyncOpenAI):
        return post
    return lambda path, **arguments: _run_blocking(post(path, **arguments))


@dataclass(eq=False, repr=False)
class InterceptedCall:
    """One call of ``post`` that requests a reply from a model.

    Args:
        arguments: The other arguments of ``post``. Tools and messages in ``extra_body`` are handled
            like those in the body.
    """

    openai: OpenAI | AsyncOpenAI
    context: ClientContext
    path: str
    arguments: Mapping[str, Any]

    def __post_init__(self) -> None:
        self._bridge = self.context.gateway.bridge
        self._options = dict(self.arguments.get("options") or {})
        self._headers: Mapping[str, Any] = self._options.get("headers") or {}
        self._is_raw = any(
            text for name, text in self._headers.items() if name.lower() == _RAW_HEADER
        )
        self._reply: Any = None
        """The last reply of the model, or its stream."""
        self._raw: Any = None
        """Raw response that contains the reply, if the caller requested raw responses."""
        extra = self._options.pop("extra_json", None)
        body = {**self.arguments["body"], **(extra if isinstance(extra, Mapping) else {})}
        self._loop = self.context.begin(
            body,
            is_responses=self.path == "/responses",
            endpoint=endpoint_of(self.openai, str(body.get("model", ""))),
        )

    async def answer(self) -> Any:
        """Run the call, and return the reply for the caller."""
        final = await self._loop.run(self._ask, self._in_gateway)
        if not self._is_raw:
            return self._parse(final)
        response = first = self._raw.http_response
        if final is not self._reply:
            content = final.model_dump_json(exclude_unset=True, by_alias=True).encode()
            response = _response(first, content=content)
            response.elapsed = first.elapsed
        return self._wrap(response)

    async def stream(self) -> Any:
        """Run the call, and return one stream of all turns."""
        with self._loop.end_on_error():
            first = await self._ask()
        events = self._events(first)
        content = _sse_lines(events) if self._is_raw else events
        is_blocking = isinstance(self.openai, OpenAI)
        output: Any = _iterate_blocking(content) if is_blocking else content
        # Start the generator, because closing one that never started would not end the call.
        await _resolve(next(output) if is_blocking else anext(output))
        if self._is_raw:
            return self._wrap(_response(self._raw.http_response, stream=_Body(output)))
        kind = MergedStream if is_blocking else AsyncMergedStream
        return kind(first, output, self._loop)

    async def _events(self, stream: Any) -> AsyncGenerator[Any, None]:
        """Yield None, then the events of all turns. Closing the generator ends the call."""
        loop = self._loop
        is_chat = loop.conversation.wire_format == "chat"
        merger = ChatStreamMerger() if is_chat else ResponsesStreamMerger()
        with loop.end_after():
            try:
                yield None
            except GeneratorExit:
                await _resolve(stream.close())
                raise
            # Without gateway tools there is one turn, whose events pass unchanged.
            is_passthrough = loop.tool_list.is_empty
            while True:
                async with aclosing(_read(stream)) as events:
                    async for event in events:
                        pushed = list(merger.push(event, loop.tool_list.is_ours))
                        for output in [event] if is_passthrough else pushed:
                            yield output
                reply = None if merger.is_empty else merger.reply()
                final = None if reply is None else loop.handle_reply(reply)
                if final is not None or reply is None:
                    break
                await self._in_gateway(partial(loop.answer_calls, reply))
                merger.next_turn()
                stream = await self._ask()
            if final is not None:
                loop.store(final, opened_as=merger.opened_as)
            for output in () if is_passthrough else merger.finish(final):
                yield output

    async def _ask(self) -> Any:
        with quiet_libraries("chat"):
            try:
                return await self._send()
            except BadRequestError as error:
                if not self._loop.retry_without_native(str(error)):
                    raise
            return await self._send()

    async def _send(self) -> Any:
        body = await self._in_gateway(self._loop.next_request)
        self._check()
        arguments = {**self.arguments, "body": body, "options": self._turn_options()}
        with self._loop.trace.within_turn():
            self._reply = self._raw = await _resolve(self.openai.post(self.path, **arguments))
        if self._is_raw:
            self._reply = await _resolve(self._raw.parse())
        return self._reply

    async def _in_gateway(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run *work* on the gateway's event loop, or, for an async caller, on the current one."""
        return self._bridge.call(work) if isinstance(self.openai, OpenAI) else await work()

    def _check(self) -> None:
        """Refuse a reply type that the gateway cannot read, unless the catalog is empty."""
        kind = self.arguments.get("cast_to")
        if not self._loop.tool_list.is_empty and not (
            isinstance(kind, type) and issubclass(kind, _REPLY_TYPES)
        ):
            raise InvalidRequestError(
                f"post({self.path!r}) cannot return {kind!r} with found tools: use the SDK's own "
                "create (or its raw form), or the bare client as .openai"
            )

    def _turn_options(self) -> dict[str, Any]:
        options = {key: value for key, value in self._options.items() if key != "post_parser"}
        if self._loop.turn > 1 and self._headers:
            headers = self._headers.items()
            options["headers"] = {
                name: text for name, text in headers if name.lower() != _IDEMPOTENCY_HEADER
            }
            options.pop("idempotency_key", None)
        return options

    def _parse(self, final: BaseModel) -> Any:
        """Return *final* parsed to the caller's type, if the caller used `parse`; else *final*."""
        parser = self._options.get("post_parser")
        if parser is None or isinstance(parser, NotGiven):
            return final
        parsed = parser(final)
        if self._loop.accounting is not None:
            attach(parsed, self._loop.accounting)
        return parsed

    def _wrap(self, content: httpx2.Response) -> Any:
        wrapped = copy.copy(self._raw)
        wrapped.http_response = content
        # The copy may have cached the parsed reply of one turn.
        wrapped._parsed_by_type = {}  # noqa: SLF001  (the SDK has no other way to set it)
        parser = self._options.get("post_parser")
        if parser is not None:
            options = wrapped._options.model_copy(update={"post_parser": parser})  # noqa: SLF001
            wrapped._options = options  # noqa: SLF001
        return wrapped


class _Merged:
    """Base of the streams of several turns. ``response`` is the first HTTP response."""

    def __init__(self, first: Any, events: Any, loop: Loop[Any]) -> None:
        # Without the base constructor, which would decode the response again.
        self.response = first.response
        self._events = self._iterator = events
        self._loop = loop

    @property
    def gateway(self) -> Accounting | None:
        """Counts of requests, calls and tokens; None until the stream has ended."""
        return self._loop.accounting


class MergedStream(_Merged, Stream[E], Generic[E]):
    """The stream of a blocking client."""

    def close(self) -> None:
        """End the client call, and close the stream of its current turn."""
        self._events.close()
        self.response.close()


class AsyncMergedStream(_Merged, AsyncStream[E], Generic[E]):
    """The stream of an async client."""

    async def close(self) -> None:
        """See `MergedStream.close`."""
        await self._events.aclose()
        await self.response.aclose()


async def _resolve(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


async def _read(stream: Any) -> AsyncGenerator[Any, None]:
    if isinstance(stream, Stream):
        with stream:
            for event in stream:
                yield event
    else:
        async with stream:
            async for event in stream:
                yield event


async def _sse_lines(events: AsyncGenerator[BaseModel, None]) -> AsyncGenerator[bytes, None]:
    """Yield an empty value, then all events as server-sent events."""
    async with aclosing(events):
        await anext(events)
        yield b""
        async for event in events:
            kind = getattr(event, "type", "")
            head = f"event: {kind}\n" if isinstance(kind, str) and kind else ""
            data = event.model_dump_json(exclude_unset=True, by_alias=True)
            yield f"{head}data: {data}\n\n".encode()
        yield _DONE


class _Body(httpx2.SyncByteStream, httpx2.AsyncByteStream):
    def __init__(self, lines: Any) -> None:
        self._lines = lines

    def __iter__(self) -> Any:
        return self._lines

    def close(self) -> None:
        self._lines.close()

    def __aiter__(self) -> Any:
        return self._lines

    async def aclose(self) -> None:
        await self._lines.aclose()


def _response(first: httpx2.Response, **body: Any) -> httpx2.Response:
    headers = [item for item in first.headers.multi_items() if item[0] not in _FRAMING_HEADERS]
    return httpx2.Response(first.status_code, headers=headers, request=first.request, **body)


def _run_blocking(work: Coroutine[Any, Any, T]) -> T:
    """Return the result of a coroutine that never suspends."""
    try:
        work.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    work.close()
    raise RuntimeError("a blocking call was about to wait for an event loop")


def _iterate_blocking(generator: AsyncGenerator[T, None]) -> Generator[T, None, None]:
    """Iterate over an async generator that never suspends. Closing the iterator closes it."""
    try:
        with suppress(StopAsyncIteration):
            while True:
                yield _run_blocking(generator.__anext__())
    finally:
        _run_blocking(generator.aclose())
