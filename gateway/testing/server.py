"""A model that says what a policy tells it, behind a real HTTP server on this machine.

    with ScriptedModel(script(Turn("Hello."))) as model:
        client = OpenAI(base_url=model.base_url, api_key="test")

It speaks Chat Completions, the Responses API, embeddings and the list of models, the first two
under Azure's addresses too. Mind that an
``HTTP_PROXY`` of the environment applies to 127.0.0.1 too, unless ``NO_PROXY`` names it.
"""

from __future__ import annotations

from dataclasses import replace
from types import TracebackType
from typing import Self

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from gateway.errors import ConfigError, InvalidRequestError
from gateway.testing import embeddings, http, rules, wire
from gateway.testing import items as answered
from gateway.testing.embedder import HashingEmbedder
from gateway.testing.endpoint import Endpoint, EndpointName, FaultKind, Faults, Gate
from gateway.testing.kept import Kept
from gateway.testing.loopback import Loopback
from gateway.testing.model import ModelRequest, Policy
from gateway.testing.usage import PromptCache

_ASKED = (
    "/v1/chat/completions",
    "/v1/responses",
    "/openai/deployments/{deployment}/chat/completions",
    "/openai/responses",
)
_CHAT_FAULTS: frozenset[FaultKind] = frozenset({"none", "status", "drop", "garbage"})
_EMBEDDING_FAULTS = _CHAT_FAULTS | frozenset(embeddings.SPOILERS)


class ScriptedModel:
    """An OpenAI-compatible service under a test's control. Any thread may use it."""

    def __init__(
        self,
        policy: Policy,
        *,
        model: str = "scripted",
        chunk_chars: int = 7,
        embedder: HashingEmbedder | None = None,
    ) -> None:
        """Make a model; it listens from `start` on.

        Args:
            policy: Decides each turn.
            model: The name in the list of models; any name is answered.
            chunk_chars: Characters of text or arguments in one chunk of a stream.
            embedder: Serves the embeddings; None means a `HashingEmbedder` of its own.
        """
        if chunk_chars < 1:
            raise ConfigError(f"chunk_chars must be at least 1, not {chunk_chars!r}")
        self.model = model
        self.embedder = embedder if embedder is not None else HashingEmbedder()
        self._policy = policy
        self._chunk_chars = chunk_chars
        self._cache = PromptCache()
        self._kept = Kept()
        self._chat: Endpoint[ModelRequest] = Endpoint(_CHAT_FAULTS)
        self._embeddings: Endpoint[tuple[str, ...]] = Endpoint(_EMBEDDING_FAULTS)
        self._loopback = Loopback(self._app())

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def start(self) -> None:
        """Listen on a free port of 127.0.0.1. Twice is harmless.

        Raises:
            ClosedError: After `close`.
        """
        self._loopback.start()

    def close(self) -> None:
        """Release every gate and stop the server. Twice is harmless."""
        self._chat.release()
        self._embeddings.release()
        self._loopback.close()

    @property
    def base_url(self) -> str:
        """What a client is pointed at."""
        return f"{self.azure_endpoint}/v1"

    @property
    def azure_endpoint(self) -> str:
        """What a client of Azure is pointed at."""
        if not self._loopback.port:
            raise ConfigError("start the model first: `with ScriptedModel(...) as model:`")
        return f"http://127.0.0.1:{self._loopback.port}"

    @property
    def requests(self) -> list[ModelRequest]:
        """A copy of the chat requests, in the order of arrival, failed and held ones too."""
        return self._chat.seen

    @property
    def embedding_requests(self) -> list[tuple[str, ...]]:
        """A copy of the texts of each embedding request, likewise."""
        return self._embeddings.seen

    def forget(self) -> None:
        """Begin the log of requests anew, and lose the conversations that were kept."""
        self._kept = Kept()
        self._chat.forget()
        self._embeddings.forget()

    def settle(self, *, timeout_s: float = 30.0) -> None:
        """Block until no request that has arrived is being answered any more. A caller has its
        answer, or has hung up, a moment before the server is done with it.

        Raises:
            TimeoutError: Not within ``timeout_s``; a gate may be holding some.
        """
        self._loopback.settle(timeout_s)

    def fail(self, faults: Faults, endpoint: EndpointName = "chat") -> None:
        """Let the next requests of *endpoint* fail; queued behind the faults still due.

        Raises:
            ConfigError: That endpoint cannot fail in that way.
        """
        self._endpoint(endpoint).fail(faults)

    def gate(self, endpoint: EndpointName = "chat") -> Gate:
        """Hold the answers of *endpoint* from now on, until the gate is released or left."""
        return self._endpoint(endpoint).gate()

    def _endpoint(self, name: EndpointName) -> Endpoint[ModelRequest] | Endpoint[tuple[str, ...]]:
        return self._chat if name == "chat" else self._embeddings

    def _app(self) -> Starlette:
        return Starlette(
            routes=[
                *(Route(path, self._complete, methods=["POST"]) for path in _ASKED),
                Route("/v1/embeddings", self._embed, methods=["POST"]),
                Route("/v1/models", self._models, methods=["GET"]),
            ],
            exception_handlers={
                InvalidRequestError: http.refused,
                HTTPException: http.unknown,
                Exception: http.crashed,
            },
        )

    async def _complete(self, request: Request) -> ASGIApp:
        body = await http.read_object(request)
        asked = ModelRequest(
            path=request.url.path,
            body=body,
            raw=await request.body(),
            headers=dict(request.headers),
            query=dict(request.query_params),
        )
        if asked.items:
            asked = replace(asked, kept=tuple(self._kept.whole(body)))
        faults = await self._chat.admit(asked)
        media_type = http.EVENTS if asked.stream else http.JSON
        if faults.kind in _ANSWERED_BLINDLY:
            return _blind(faults, media_type)
        parts = self._parts(self._answer(asked))
        send = http.dropped if faults.kind == "drop" else http.answered
        return send(parts, media_type)

    def _parts(self, answer: wire.Answer) -> list[bytes]:
        asked = answer.request
        if asked.items:
            items = [*(asked.kept or ()), *answered.items(answer)]
            self._kept.keep(asked.body, answered.response_id(answer), items)
        if asked.stream:
            write = answered.item_events if asked.items else wire.events
            return list(write(answer, chunk_chars=self._chunk_chars))
        whole = answered.response(answer) if asked.items else wire.completion(answer)
        return [http.json_bytes(whole)]

    def _answer(self, asked: ModelRequest) -> wire.Answer:
        rules.check(asked)
        turn = self._policy(asked)
        wanted = asked.body.get("n")
        choices = wanted if isinstance(wanted, int) and wanted > 0 else 1
        usage = self._cache.usage(asked, turn, choices=choices)
        return wire.Answer(request=asked, turn=turn, usage=usage, choices=choices)

    async def _embed(self, request: Request) -> ASGIApp:
        asked = embeddings.parse(await http.read_object(request), self.embedder.info)
        faults = await self._embeddings.admit(asked.texts)
        if faults.kind in _ANSWERED_BLINDLY:
            return _blind(faults, http.JSON)
        embedded = await self.embedder.embed(asked.texts, role="document")
        spoil = embeddings.SPOILERS.get(faults.kind)
        rows = asked.fold(embedded.vectors)
        body = asked.answer(spoil(rows) if spoil else rows, tokens=embedded.tokens or 0)
        send = http.dropped if faults.kind == "drop" else http.answered
        return send([http.json_bytes(body)], http.JSON)

    async def _models(self, _request: Request) -> Response:
        entries = [
            {"id": name, "object": "model", "created": wire.CREATED, "owned_by": "gateway"}
            for name in (self.model, self.embedder.info.model_id)
        ]
        body = http.json_bytes({"object": "list", "data": entries})
        return http.answered([body], http.JSON)


_ANSWERED_BLINDLY: frozenset[FaultKind] = frozenset({"status", "garbage"})
"""Faults that need no answer of the policy or the embedder."""


def _blind(faults: Faults, media_type: str) -> Response:
    return http.failed(faults) if faults.kind == "status" else http.garbage(media_type)
