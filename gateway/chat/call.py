"""One request of the bare client, which discovery takes over. No I/O."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import httpx2
from openai import NotGiven
from openai.types.chat import ChatCompletion
from openai.types.responses import Response
from pydantic import BaseModel

from gateway.chat.chains import Chains
from gateway.chat.completions import ChatTalk
from gateway.chat.responses import ResponsesTalk
from gateway.discovery.tool_list import Offer
from gateway.errors import InvalidRequestError

_RAW_HEADER = "X-Stainless-Raw-Response"
_ONCE = frozenset({"idempotency-key"})
"""Headers that identify one request: later turns may not repeat them."""
_REFRAMED = frozenset({"content-length", "content-encoding", "transfer-encoding"})
Path = Literal["/chat/completions", "/responses"]
_KINDS = (ChatCompletion, Response)
Talks = ChatTalk | ResponsesTalk


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """What the SDK's own code gives to its client's ``post``."""

    path: Path
    given: Mapping[str, Any]
    """All arguments but the path."""
    body: Mapping[str, object]
    """With ``extra_body`` merged in: its tools and messages count as all others."""
    raw: bool
    """True if the caller wants the response around the reply."""
    streams: bool
    options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, path: str, given: Mapping[str, Any]) -> Call | None:
        """Read a request; None if it is none for discovery.

        Raises:
            InvalidRequestError: If the model would be asked without the catalog.
        """
        if path.startswith("/responses?"):
            raise InvalidRequestError(
                "beta.responses is not wrapped, so the model would see no catalog: use "
                "responses, or the bare client as .openai"
            )
        body = given.get("body")
        if path not in {"/chat/completions", "/responses"} or not isinstance(body, Mapping):
            return None
        options = dict(given.get("options") or {})
        extra = options.pop("extra_json", None)
        headers = {name.lower(): value for name, value in (options.get("headers") or {}).items()}
        return cls(
            path="/responses" if path == "/responses" else "/chat/completions",
            given=given,
            body={**body, **extra} if isinstance(extra, Mapping) else body,
            raw=bool(headers.get(_RAW_HEADER.lower())),
            streams=given.get("stream") is True,
            options=options,
        )

    def talk(self, chains: Chains) -> Talks:
        """Begin the conversation."""
        if self.path == "/responses":
            return ResponsesTalk(self.body, chains)
        return ChatTalk(self.body)

    def check(self, offer: Offer) -> None:
        """Refuse a reply in a form that nobody here can read.

        Raises:
            InvalidRequestError: If there is something to discover.
        """
        kind = self.given.get("cast_to")
        if not offer.empty and not (isinstance(kind, type) and issubclass(kind, _KINDS)):
            raise InvalidRequestError(
                f"post({self.path!r}) cannot give a {kind!r} with found tools: use the SDK's own "
                "create, raw if need be, or the bare client as .openai"
            )

    def turn(self, number: int, body: Mapping[str, object]) -> dict[str, Any]:
        """Give the arguments of turn *number*; replies come as the service wrote them."""
        options = {key: value for key, value in self.options.items() if key != "post_parser"}
        if number > 1 and options.get("headers"):
            headers = options["headers"].items()
            options["headers"] = {key: value for key, value in headers if key.lower() not in _ONCE}
            options.pop("idempotency_key", None)
        return {**self.given, "body": body, "options": options}

    def parsed(self, final: BaseModel, accounting: Callable[[BaseModel], None]) -> Any:
        """Give *final* parsed, as `parse` does, if the caller asked for that."""
        parser = self.options.get("post_parser")
        if parser is None or isinstance(parser, NotGiven):
            return final
        told = parser(final)
        accounting(told)
        return told

    def response(self, got: Any, content: httpx2.Response) -> Any:
        """Give the SDK's response object *got* over *content* instead."""
        made = copy.copy(got)
        made.http_response = content
        # What was parsed from the turn alone must not be given for the whole.
        made._parsed_by_type = {}  # noqa: SLF001  (the SDK has no other way to set it)
        parser = self.options.get("post_parser")
        if parser is not None:
            made._options = got._options.model_copy(update={"post_parser": parser})  # noqa: SLF001
        return made


def whole(first: httpx2.Response, final: BaseModel) -> httpx2.Response:
    """Write *final* as the response of one request, with the status and headers of *first*."""
    made = httpx2.Response(
        first.status_code,
        headers=_headers(first),
        content=final.model_dump_json(exclude_unset=True, by_alias=True).encode(),
        request=first.request,
    )
    made.elapsed = first.elapsed
    return made


def streamed(first: httpx2.Response, content: Iterable[bytes] | Any) -> httpx2.Response:
    """Write a stream of events as the response of one request."""
    return httpx2.Response(
        first.status_code, headers=_headers(first), content=content, request=first.request
    )


def sse(event: BaseModel) -> bytes:
    """Write one chunk or event as the service does."""
    kind = getattr(event, "type", "")
    head = f"event: {kind}\n" if isinstance(kind, str) and kind else ""
    data = event.model_dump_json(exclude_unset=True, by_alias=True)
    return f"{head}data: {data}\n\n".encode()


DONE = b"data: [DONE]\n\n"


def _headers(first: httpx2.Response) -> list[tuple[str, str]]:
    return [(name, value) for name, value in first.headers.multi_items() if name not in _REFRAMED]
