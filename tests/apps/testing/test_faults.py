"""Failing and waiting on demand."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import openai
import pytest

from gateway.runtime.vectors import Matrix
from gateway.testing import Faults, HashingEmbedder, ModelRequest, Turn, script
from gateway.testing.endpoint import EndpointName, FaultKind
from tests.apps.testing.driving import HELLO, awaiting, talking

HI = script(Turn("Hi there."))


@pytest.mark.parametrize("status", [429, 500, 503])
def test_the_sdk_retries_a_status_and_succeeds(status: int) -> None:
    """Every attempt is a request that the model saw."""
    with talking(HI, retries=2) as (model, client):
        model.fail(Faults(status=status, times=2))
        answer = client.chat.completions.create(model="m", messages=HELLO)

    assert "Hi there." == answer.choices[0].message.content
    assert 3 == len(model.requests)


def test_faults_come_in_the_order_in_which_they_were_queued() -> None:
    """A run of different failures is one story."""
    with talking(HI) as (model, client):
        model.fail(Faults(status=429, times=1))
        model.fail(Faults(status=404, times=1))
        with pytest.raises(openai.RateLimitError):
            client.chat.completions.create(model="m", messages=HELLO)
        with pytest.raises(openai.NotFoundError):
            client.chat.completions.create(model="m", messages=HELLO)
        client.chat.completions.create(model="m", messages=HELLO)


def test_a_dropped_answer_is_a_connection_error() -> None:
    """The request was worked on; only the answer was lost."""
    with talking(HI) as (model, client):
        model.fail(Faults(kind="drop"))

        with pytest.raises(openai.APIConnectionError):
            client.chat.completions.create(model="m", messages=HELLO)


def test_a_dropped_stream_breaks_after_its_first_chunks() -> None:
    """Half a stream is what a wrapper has already passed on."""
    read: list[str] = []
    with talking(HI) as (model, client):
        model.fail(Faults(kind="drop"))
        stream = client.chat.completions.create(model="m", messages=HELLO, stream=True)
        with pytest.raises(openai.APIConnectionError):
            read.extend(chunk.choices[0].delta.content or "" for chunk in stream)

    assert "Hi ther" == "".join(read)


@pytest.mark.parametrize("stream", [False, True])
def test_garbage_is_not_json(stream: bool) -> None:
    """A proxy's page with a 200: the SDK lets the decoder's error through."""
    with talking(HI) as (model, client):
        model.fail(Faults(kind="garbage"))

        with pytest.raises(json.JSONDecodeError):
            list(client.chat.completions.create(model="m", messages=HELLO, stream=stream))


@pytest.mark.parametrize("kind", ["status", "drop", "garbage"])
def test_embeddings_fail_apart_from_the_chat(kind: FaultKind) -> None:
    """The two may be different services."""
    with talking(HI) as (model, client):
        model.fail(Faults(kind=kind), "embeddings")
        client.chat.completions.create(model="m", messages=HELLO)
        with pytest.raises((openai.APIError, json.JSONDecodeError)):
            client.embeddings.create(model="e", input="a")
        client.embeddings.create(model="e", input="a")

    assert [("a",), ("a",)] == model.embedding_requests


@pytest.mark.parametrize(
    ("transform", "expected"),
    [
        (lambda rows: rows * np.float32("nan"), [(8, True), (8, True)]),
        (lambda rows: rows[:-1], [(8, False)]),
        (lambda rows: rows[:, :-1], [(7, False), (7, False)]),
    ],
)
def test_spoilt_vectors_arrive_spoilt(
    transform: Callable[[Matrix], Matrix], expected: list[tuple[int, bool]]
) -> None:
    """With a 200, as real services and proxies send them."""
    with talking(HI, embedder=HashingEmbedder(8, transform=transform)) as (_, client):
        packed = client.embeddings.create(model="e", input=["a", "b"])
        plain = client.embeddings.create(model="e", input=["a", "b"], encoding_format="float")

    for answer in (packed, plain):
        rows = [entry.embedding for entry in answer.data]
        assert expected == [(len(row), math.isnan(row[0])) for row in rows]


@pytest.mark.parametrize("endpoint", ["chat", "embeddings"])
def test_a_gate_holds_until_it_is_released(endpoint: EndpointName) -> None:
    """Without a sleep: the test knows that the request is under way."""
    with talking(HI) as (model, client), ThreadPoolExecutor() as pool:
        gate = model.gate(endpoint)
        work = pool.submit(_ask, client, endpoint)
        gate.wait()
        held = not work.done()
        gate.release()
        gate.release()
        work.result()

    assert held


def _ask(client: openai.OpenAI, endpoint: EndpointName) -> None:
    if endpoint == "chat":
        client.chat.completions.create(model="m", messages=HELLO)
    else:
        client.embeddings.create(model="e", input="a")


async def test_what_is_answered_for_nobody_can_be_waited_for() -> None:
    """The caller hung up, the server still answers: who counts objects would find it at that."""
    answered: list[str] = []

    def answer(request: ModelRequest) -> Turn:
        answered.append(request.model)
        return Turn("Nobody reads this.")

    async with awaiting(answer) as (model, client):
        with model.gate() as gate:
            asked = asyncio.create_task(client.chat.completions.create(model="m", messages=HELLO))
            await gate.arrived()
            asked.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asked
            with pytest.raises(TimeoutError):
                model.settle(timeout_s=0)

            assert [] == answered
        model.settle()

        assert ["m"] == answered
        model.settle(timeout_s=0)
    model.settle()


async def test_a_gate_is_awaited_and_released_on_leaving() -> None:
    """Many requests can be brought to the same point."""
    async with awaiting(HI) as (model, client), asyncio.TaskGroup() as group:
        with model.gate() as gate:
            tasks = [
                group.create_task(client.chat.completions.create(model="m", messages=HELLO))
                for _ in range(5)
            ]
            await gate.arrived(5)
            done = [task.done() for task in tasks]

    assert [False] * 5 == done
    assert 5 == len(model.requests)


def test_closing_releases_what_is_held() -> None:
    """A test that fails inside must not hang in its teardown."""
    with ThreadPoolExecutor() as pool, talking(HI) as (model, client):
        gate = model.gate()
        work = pool.submit(client.chat.completions.create, model="m", messages=HELLO)
        gate.wait()
        model.close()
        answer = work.result()

    assert "Hi there." == answer.choices[0].message.content
