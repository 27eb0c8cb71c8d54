"""Faults and gates that a test sets on the scripted model."""

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
from tests.apps.testing.driving import HELLO, serve_async, serve_blocking

HI = script(Turn("Hi there."))


@pytest.mark.parametrize("status", [429, 500, 503])
def test_sdk_retries_after_a_fault_with_an_error_status(status: int) -> None:
    """Every attempt is in the model's log of requests."""
    with serve_blocking(HI, retries=2) as (model, client):
        model.fail(Faults(status=status, times=2))
        answer = client.chat.completions.create(model="m", messages=HELLO)

    assert "Hi there." == answer.choices[0].message.content
    assert 3 == len(model.requests)


def test_faults_occur_in_the_order_in_which_they_were_set() -> None:
    with serve_blocking(HI) as (model, client):
        model.fail(Faults(status=429, times=1))
        model.fail(Faults(status=404, times=1))
        with pytest.raises(openai.RateLimitError):
            client.chat.completions.create(model="m", messages=HELLO)
        with pytest.raises(openai.NotFoundError):
            client.chat.completions.create(model="m", messages=HELLO)
        client.chat.completions.create(model="m", messages=HELLO)


def test_dropped_answer_raises_a_connection_error_in_the_sdk() -> None:
    with serve_blocking(HI) as (model, client):
        model.fail(Faults(kind="drop"))

        with pytest.raises(openai.APIConnectionError):
            client.chat.completions.create(model="m", messages=HELLO)


def test_dropped_stream_breaks_after_its_first_chunks() -> None:
    """A wrapper of the client has already passed these chunks on."""
    read: list[str] = []
    with serve_blocking(HI) as (model, client):
        model.fail(Faults(kind="drop"))
        stream = client.chat.completions.create(model="m", messages=HELLO, stream=True)
        with pytest.raises(openai.APIConnectionError):
            read.extend(chunk.choices[0].delta.content or "" for chunk in stream)

    assert "Hi ther" == "".join(read)


@pytest.mark.parametrize("stream", [False, True])
def test_fault_garbage_sends_an_answer_that_is_not_json(stream: bool) -> None:
    """Some proxies send such pages with status 200. The SDK raises the decoder's error."""
    with serve_blocking(HI) as (model, client):
        model.fail(Faults(kind="garbage"))

        with pytest.raises(json.JSONDecodeError):
            list(client.chat.completions.create(model="m", messages=HELLO, stream=stream))


@pytest.mark.parametrize("kind", ["status", "drop", "garbage"])
def test_faults_of_embeddings_do_not_affect_the_chat(kind: FaultKind) -> None:
    """A user's embeddings may come from another service than the chat."""
    with serve_blocking(HI) as (model, client):
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
def test_endpoint_sends_the_vectors_that_a_transform_returns(
    transform: Callable[[Matrix], Matrix], expected: list[tuple[int, bool]]
) -> None:
    """Real services and proxies sometimes send such wrong vectors with status 200."""
    with serve_blocking(HI, embedder=HashingEmbedder(8, transform=transform)) as (_, client):
        packed = client.embeddings.create(model="e", input=["a", "b"])
        plain = client.embeddings.create(model="e", input=["a", "b"], encoding_format="float")

    for answer in (packed, plain):
        rows = [entry.embedding for entry in answer.data]
        assert expected == [(len(row), math.isnan(row[0])) for row in rows]


@pytest.mark.parametrize("endpoint", ["chat", "embeddings"])
def test_gate_holds_requests_until_it_is_released(endpoint: EndpointName) -> None:
    with serve_blocking(HI) as (model, client), ThreadPoolExecutor() as pool:
        gate = model.gate(endpoint)
        work = pool.submit(_ask, client, endpoint)
        gate.wait()
        pending = not work.done()
        gate.release()
        gate.release()
        work.result()

    assert pending


def _ask(client: openai.OpenAI, endpoint: EndpointName) -> None:
    if endpoint == "chat":
        client.chat.completions.create(model="m", messages=HELLO)
    else:
        client.embeddings.create(model="e", input="a")


async def test_settle_waits_for_running_answers_to_disconnected_clients() -> None:
    """Tests that count objects must not count the objects of a running answer."""
    answered: list[str] = []

    def answer(request: ModelRequest) -> Turn:
        answered.append(request.model)
        return Turn("Nobody reads this.")

    async with serve_async(answer) as (model, client):
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


async def test_gate_can_be_awaited_and_is_released_at_the_end_of_its_block() -> None:
    async with serve_async(HI) as (model, client), asyncio.TaskGroup() as group:
        with model.gate() as gate:
            tasks = [
                group.create_task(client.chat.completions.create(model="m", messages=HELLO))
                for _ in range(5)
            ]
            await gate.arrived(5)
            done = [task.done() for task in tasks]

    assert [False] * 5 == done
    assert 5 == len(model.requests)


def test_close_of_the_model_releases_held_requests() -> None:
    """A failing test must not hang in its teardown."""
    with ThreadPoolExecutor() as pool, serve_blocking(HI) as (model, client):
        gate = model.gate()
        work = pool.submit(client.chat.completions.create, model="m", messages=HELLO)
        gate.wait()
        model.close()
        answer = work.result()

    assert "Hi there." == answer.choices[0].message.content
