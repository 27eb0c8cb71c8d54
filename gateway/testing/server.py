"""A scripted model behind a real HTTP server on this machine.

    with ScriptedModel(script(Turn("Hello."))) as model:
        client = OpenAI(base_url=model.base_url, api_key="test")

It serves Chat Completions, the Responses API (both also under Azure's paths), embeddings and the
list of models. ``HTTP_PROXY`` applies too, unless ``NO_PROXY`` contains 127.0.0.1.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from http import HTTPStatus
from typing import Self

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from gateway.errors import ConfigError, InvalidRequestError
from gateway.testing import chat_format, responses_format
from gateway.testing.chat_format import ConversationStore, ModelAnswer, PromptCache
from gateway.testing.embedder import HashingEmbedder, checked_texts, embeddings_answer
from gateway.testing.endpoint import Endpoint, EndpointName, Faults, Gate, Loopback
from gateway.testing.model import ModelRequest, Policy, check_request

_JSON = "application/json"
_EVENTS = "text/event-stream"
_ERROR_TYPES = {400: "invalid_request_error", 404: "invalid_request_error", 429: "rate_limit_error"}
_CHAT_PATHS = (
    "/v1/chat/completions",
    "/v1/responses",
    "/openai/deployments/{deployment}/chat/completions",
    "/openai/responses",
)


class ScriptedModel:
    """An OpenAI-compatible service that a test controls. Any thread may use it."""

    def __init__(
        self,
        policy: Policy,
        *,
        model: str = "scripted",
        chunk_chars: int = 7,
        embedder: HashingEmbedder | None = None,
    ) -> None:
        """Create a model, which listens from `start` on.

        Args:
            policy: Returns each turn.
            model: Name in the list of models. Requests may use any name.
            chunk_chars: Characters of text or arguments in one chunk of a stream.
            embedder: Embedder of the embeddings endpoint; None uses a `HashingEmbedder`.
        """
        if chunk_chars < 1:
            raise ConfigError(f"chunk_chars must be at least 1, not {chunk_chars!r}")
        self.model = model
        self.embedder = embedder or HashingEmbedder()
        self._policy = policy
        self._chunk_chars = chunk_chars
        self._cache = PromptCache()
        self._conversations = ConversationStore()
        self._chat = Endpoint[ModelRequest]()
        self._embeddings = Endpoint[tuple[str, ...]]()
        self._refused: list[str] = []
        self._loopback = Loopback(self._app())

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def start(self) -> None:
        """Listen on a free port of 127.0.0.1. A second call has no effect.

        Raises:
            ClosedError: After `close`.
        """
        self._loopback.start()

    def close(self) -> None:
        """Release every gate and stop the server. A second call has no effect."""
        self._chat.release()
        self._embeddings.release()
        self._loopback.close()

    @property
    def base_url(self) -> str:
        """Base URL for a client."""
        return f"{self.azure_endpoint}/v1"

    @property
    def azure_endpoint(self) -> str:
        """Endpoint for a client of Azure."""
        if not self._loopback.port:
            raise ConfigError("start the model first: `with ScriptedModel(...) as model:`")
        return f"http://127.0.0.1:{self._loopback.port}"

    @property
    def requests(self) -> list[ModelRequest]:
        """Chat requests in the order of arrival, including failed and held ones."""
        return list(self._chat.seen)

    @property
    def embedding_requests(self) -> list[tuple[str, ...]]:
        """Texts of each embedding request, in the order of arrival."""
        return list(self._embeddings.seen)

    def forget(self) -> None:
        """Clear the log of requests and the stored conversations."""
        self._conversations = ConversationStore()
        self._chat.seen.clear()
        self._embeddings.seen.clear()

    def settle(self, *, timeout_s: float = 30.0) -> None:
        """Block until all requests that have arrived are finished.

        A request may finish a moment after its client has the answer.

        Raises:
            TimeoutError: After ``timeout_s``. A gate may hold a request.
        """
        self._loopback.settle(timeout_s)

    def fail(self, faults: Faults, endpoint: EndpointName = "chat") -> None:
        """Let the next requests of *endpoint* fail, after pending faults."""
        self._endpoint(endpoint).fail(faults)

    def gate(self, endpoint: EndpointName = "chat") -> Gate:
        """Hold the answers of *endpoint* until the gate's release or the end of its block."""
        return self._endpoint(endpoint).gate()

    def refuse(self, part: str) -> None:
        """Refuse embedding requests with *part* in a text, with status 400."""
        self._refused.append(part)

    def _endpoint(self, name: EndpointName) -> Endpoint[ModelRequest] | Endpoint[tuple[str, ...]]:
        return self._chat if name == "chat" else self._embeddings

    def _app(self) -> Starlette:
        return Starlette(
            routes=[
                *(Route(path, self._complete, methods=["POST"]) for path in _CHAT_PATHS),
                Route("/v1/embeddings", self._embed, methods=["POST"]),
                Route("/v1/models", self._models, methods=["GET"]),
            ],
            exception_handlers={
                InvalidRequestError: _refuse,
                HTTPException: _answer_unknown,
                Exception: _show_crash,
            },
        )

    async def _complete(self, http_request: Request) -> ASGIApp:
        request = ModelRequest(
            path=http_request.url.path,
            body=await _read_object(http_request),
            raw=await http_request.body(),
            headers=dict(http_request.headers),
            query=dict(http_request.query_params),
        )
        if request.is_responses:
            request = replace(request, stored=tuple(self._conversations.load(request.body)))
        faults = await self._chat.admit(request)
        media_type = _EVENTS if request.stream else _JSON
        if response := _fail_at_once(faults, media_type):
            return response
        return _respond(self._format(self._answer(request)), media_type, faults)

    def _answer(self, request: ModelRequest) -> ModelAnswer:
        check_request(request)
        turn = self._policy(request)
        count = request.body.get("n")
        choices = count if isinstance(count, int) and count > 0 else 1
        usage = self._cache.usage(request, turn, choices=choices)
        return ModelAnswer(request=request, turn=turn, usage=usage, choices=choices)

    def _format(self, answer: ModelAnswer) -> list[bytes]:
        request = answer.request
        if request.is_responses:
            items = [*(request.stored or ()), *responses_format.items(answer)]
            self._conversations.save(request.body, responses_format.response_id(answer), items)
        if request.stream:
            events = responses_format.item_events if request.is_responses else chat_format.events
            return list(events(answer, chunk_chars=self._chunk_chars))
        whole = responses_format.response if request.is_responses else chat_format.completion
        return [json.dumps(whole(answer)).encode()]

    async def _embed(self, http_request: Request) -> ASGIApp:
        body = await _read_object(http_request)
        texts = checked_texts(body, self.embedder.info)
        faults = await self._embeddings.admit(texts)
        if response := _fail_at_once(faults, _JSON):
            return response
        if any(part in text for part in self._refused for text in texts):
            raise InvalidRequestError("the test refuses one of these texts")
        embedded = await self.embedder.embed(texts, role="document")
        # A spoilt vector may contain NaN, which is not valid JSON.
        answer = json.dumps(embeddings_answer(body, embedded))
        return _respond([answer.encode()], _JSON, faults)

    async def _models(self, _request: Request) -> ASGIApp:
        models = [
            {"id": name, "object": "model", "created": chat_format.CREATED, "owned_by": "gateway"}
            for name in (self.model, self.embedder.info.model_id)
        ]
        return JSONResponse({"object": "list", "data": models})


def _fail_at_once(faults: Faults | None, media_type: str) -> Response | None:
    """Return the response to a fault of kind ``status`` or ``garbage``; None otherwise."""
    if faults is None or faults.kind == "drop":
        return None
    if faults.kind == "status":
        # The client retries at once.
        return _error(faults.status, "the test asked for this fault", {"retry-after-ms": "1"})
    # JSON cut in the middle, with status 200.
    body = b'{"id": "garbage", "data": ['
    if media_type == _EVENTS:
        body = b"data: " + body + b"\n\n"
    return Response(body, media_type=media_type)


def _respond(parts: Sequence[bytes], media_type: str, faults: Faults | None) -> ASGIApp:
    """Send *parts* one by one. A dropped answer announces its full length, but is cut."""
    headers = None
    if media_type == _JSON or faults:
        headers = {"content-length": str(sum(map(len, parts)))}
    if faults:
        parts = parts[: len(parts) // 2] or [parts[0][: len(parts[0]) // 2]]
    return StreamingResponse(_yield_parts(parts), headers=headers, media_type=media_type)


async def _yield_parts(parts: Sequence[bytes]) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


def _error(status: int, message: str, headers: dict[str, str] | None = None) -> Response:
    kind = _ERROR_TYPES.get(status, "server_error")
    detail = {"message": message, "type": kind, "param": None, "code": None}
    return JSONResponse({"error": detail}, status, headers)


async def _refuse(_request: Request, fault: Exception) -> Response:
    return _error(HTTPStatus.BAD_REQUEST, str(fault))


async def _answer_unknown(request: Request, fault: Exception) -> Response:
    status = fault.status_code if isinstance(fault, HTTPException) else HTTPStatus.NOT_FOUND
    return _error(status, f"unknown request URL: {request.method} {request.url.path}")


async def _show_crash(_request: Request, fault: Exception) -> Response:
    """Return the policy's exception as an error that the client does not retry."""
    message = f"the policy raised {type(fault).__name__}: {fault}"
    return _error(HTTPStatus.INTERNAL_SERVER_ERROR, message, {"x-should-retry": "false"})


async def _read_object(request: Request) -> dict[str, object]:
    """Read the body; raise an `InvalidRequestError` unless it is a JSON object."""
    try:
        body = json.loads(await request.body())
    except ValueError as fault:
        raise InvalidRequestError("we could not parse the JSON body of your request") from fault
    if not isinstance(body, dict):
        raise InvalidRequestError("the body of your request must be a JSON object")
    return body
