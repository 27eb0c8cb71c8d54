"""The conversations of the demo, held and judged."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from openai import OpenAIError
from openai.types.chat import ChatCompletionMessageParam

from gateway.chat.accounting import Accounting
from gateway.chat.client import AutoDiscoveryClient
from gateway.chat.events import Called, Event, Replied, Requested, Searched
from gateway.cli.demo.requests import Request, instructions
from gateway.cli.demo.scene import Scene
from gateway.discovery.proxies import proxy
from gateway.discovery.tool_list import definition_tokens
from gateway.errors import GatewayError
from gateway.sync import SyncGateway

E = TypeVar("E")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One conversation as it went."""

    request: Request
    events: tuple[Event, ...]
    answer: str
    duration_s: float
    faults: tuple[str, ...]
    """What should have happened and did not; empty if all is well."""

    def told(self, kind: type[E]) -> tuple[E, ...]:
        """Give the events of one kind, in order."""
        return tuple(event for event in self.events if isinstance(event, kind))


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """What all conversations cost. Tokens of definitions are estimates."""

    tools: int
    servers: int
    model_requests: int
    all_schema_tokens: int
    """If every request carried every tool's schema."""
    sent_schema_tokens: int
    prompt_tokens: int
    """As the model's server counted them, messages included."""
    completion_tokens: int
    cached_tokens: int
    """Of the prompts, as the server reported them."""
    prefix_stability: float
    """The share of the later requests' bytes that a prompt cache could know, 0 to 1."""
    seconds: dict[str, float]
    """By stage."""
    repeated_s: float
    """How long the same searches took a second time, answered by the caches."""
    cache_hits: int
    cache_lookups: int
    embedded_texts: int
    """Texts embedded in this run; the others came from the store."""
    vectors: int


def converse(scene: Scene, request: Request) -> Outcome:
    """Hold one conversation and look whether the right tool was really called."""
    events: list[Event] = []
    client = AutoDiscoveryClient(scene.openai, scene.gateway, observer=events.append)
    messages: list[ChatCompletionMessageParam] = [
        {"role": "system", "content": instructions(scene.folder)},
        {"role": "user", "content": request.text},
    ]
    faults: list[str] = []
    answer = ""
    began = time.perf_counter()
    try:
        reply = client.chat.completions.create(model=scene.model, messages=messages)
        answer = reply.choices[0].message.content or ""
    except (GatewayError, OpenAIError) as error:
        faults.append(f"the conversation ended with {type(error).__name__}: {error}")
    faults += _faults(request, events, scene.folder)
    return Outcome(
        request=request,
        events=tuple(events),
        answer=answer,
        duration_s=time.perf_counter() - began,
        faults=tuple(faults),
    )


def _faults(request: Request, events: Sequence[Event], folder: Path) -> list[str]:
    good = {
        event.result.tool_id
        for event in events
        if isinstance(event, Called) and event.result and not event.result.is_error
    }
    faults = []
    if request.expected_tool not in good:
        faults.append(f"{request.expected_tool} was not called with success")
    if request.expected_file and not (folder / request.expected_file).is_file():
        faults.append(f"the file {request.expected_file} does not exist")
    return faults


_NO_CALL = Accounting(calls=0)


def totals(scene: Scene, outcomes: Sequence[Outcome]) -> Totals:
    """Add up what the conversations cost; their searches are asked again for the caches' part."""
    options = scene.gateway.options.discovery
    every = definition_tokens([proxy(entity, options) for entity in scene.entities])
    requests = [event for each in outcomes for event in each.told(Requested)]
    replies = [event for each in outcomes for event in each.told(Replied)]
    repeated_s = _repeat(scene, outcomes)
    measured = scene.meters.read()
    return Totals(
        tools=len(scene.entities),
        servers=len({entity.server for entity in scene.entities}),
        model_requests=len(requests),
        all_schema_tokens=every * len(requests),
        sent_schema_tokens=sum(event.definition_tokens for event in requests),
        prompt_tokens=sum(event.prompt_tokens for event in replies),
        completion_tokens=sum(event.completion_tokens for event in replies),
        cached_tokens=sum(event.accounting.cached_tokens for event in replies),
        prefix_stability=sum((event.accounting for event in replies), _NO_CALL).prefix_stability,
        seconds=measured.seconds,
        repeated_s=repeated_s,
        cache_hits=measured.hits,
        cache_lookups=measured.lookups,
        embedded_texts=scene.report.embedded_texts,
        vectors=scene.report.vectors,
    )


def _repeat(scene: Scene, outcomes: Sequence[Outcome]) -> float:
    twin = SyncGateway(scene.gateway)
    began = time.perf_counter()
    for event in (event for each in outcomes for event in each.told(Searched)):
        twin.search(queries=event.queries)
    return time.perf_counter() - began
