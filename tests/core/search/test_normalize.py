"""The normalizer: conformance of normalizers, and what survives a rewrite."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai import APIStatusError, AsyncOpenAI, OpenAI

from gateway import OpenAINormalizer
from gateway.errors import InvalidRequestError
from gateway.runtime.background_loop import Bridge
from gateway.runtime.cache import Cache, SingleFlight
from gateway.runtime.telemetry import Telemetry
from gateway.runtime.text import literals
from gateway.search import MAX_CHARS, CachedNormalizer, Normalizer, settle
from gateway.testing import Faults, ModelRequest, ScriptedModel, Turn
from tests.fakes import TableNormalizer, run_twice

REWRITES = {"надіслати лист": "send email", "plain": ""}
TELEMETRY = Telemetry()


def answer(request: ModelRequest) -> Turn:
    return Turn(REWRITES.get(request.user_text, ""))


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel(answer) as model:
        yield model


@pytest.fixture(params=["sync", "async"])
async def normalizer(
    request: pytest.FixtureRequest, model: ScriptedModel
) -> AsyncIterator[Normalizer]:
    if request.param == "sync":
        with OpenAI(base_url=model.base_url, api_key="test") as client:
            yield OpenAINormalizer(client, model="m")
    else:
        async with AsyncOpenAI(base_url=model.base_url, api_key="test") as client:
            yield OpenAINormalizer(client, model="m")


async def test_a_normalizer_rewrites_and_may_say_nothing(normalizer: Normalizer) -> None:
    """Blank means that the query stays as it is."""
    rewritten = await normalizer.rewrite("надіслати лист")
    plain = await normalizer.rewrite("plain")

    assert ("send email", "") == (rewritten.text, plain.text)


async def test_the_model_is_asked_once_with_the_query_as_data(model: ScriptedModel) -> None:
    """Instructions and query stand apart, the answer is short, and temperature is zero."""
    with OpenAI(base_url=model.base_url, api_key="test") as client:
        made = OpenAINormalizer(client, model="small")
        rewrite = await made.rewrite("надіслати лист")

    (request,) = model.requests
    assert ["system", "user"] == [message["role"] for message in request.messages]
    assert "надіслати лист" == request.user_text
    assert ("small", 0, 96) == (
        request.model,
        request.body["temperature"],
        request.body["max_completion_tokens"],
    )
    port = model.base_url.split(":")[2].split("/")[0]
    assert f"127.0.0.1:{port}/small" == made.model_id
    assert "127.0.0.1" == made.provider
    assert (rewrite.input_tokens or 0) > 0
    assert (rewrite.output_tokens or 0) > 0


async def test_a_model_that_takes_no_temperature_is_asked_without() -> None:
    """Those that reason; it is refused once, and no later request has it."""

    def reason(request: ModelRequest) -> Turn:
        if "temperature" in request.body:
            raise InvalidRequestError("Unsupported value: 'temperature' does not support 0")
        return answer(request)

    with (
        ScriptedModel(reason) as model,
        OpenAI(base_url=model.base_url, api_key="test", max_retries=0) as client,
    ):
        made = OpenAINormalizer(client, model="m")
        rewrites = [(await made.rewrite("надіслати лист")).text for _ in range(2)]

    assert ["send email"] * 2 == rewrites
    assert [True, False, False] == ["temperature" in each.body for each in model.requests]


async def test_a_refusal_of_the_service_is_the_clients_error(model: ScriptedModel) -> None:
    """The search catches it and goes on with the original query."""
    model.fail(Faults(status=400))
    with OpenAI(base_url=model.base_url, api_key="test") as client, pytest.raises(APIStatusError):
        await OpenAINormalizer(client, model="m").rewrite("a")


# -- what is made of an answer ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "said", "expected"),
    [
        ("надіслати лист", "send email", "send email"),
        ("надіслати лист", ' "send email" \nBecause…', "send email"),
        ("надіслати лист", "```\nsend email\n```", "send email"),
        ("надіслати лист", "", "надіслати лист"),
        ("надіслати лист", "\u200b", "надіслати лист"),
        ("Send Email", "send email", "Send Email"),
        ("лист для bob@example.com", "send email", "send email bob@example.com"),
        ("лист для bob@example.com", "email to BOB@example.com", "email to BOB@example.com"),
        ("відкрий octo/repo v1.2.3", "open repository", "open repository octo/repo v1.2.3"),
    ],
)
def test_the_first_line_counts_and_literals_survive(query: str, said: str, expected: str) -> None:
    """Whatever a model says: ids, addresses, versions and repositories are not translated."""
    assert expected == settle(query, said)


@given(st.text(min_size=1, max_size=80), st.text(max_size=80))
def test_no_literal_of_the_query_is_ever_lost(query: str, said: str) -> None:
    """The rewrite of a hostile or broken model included."""
    settled = settle(query, said)

    assert settled
    assert all(literal.casefold() in settled.casefold() for literal in literals(query))


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("search query: send email", "send email"),
        ("Sure! Here's the rewritten query:\n**send email**", "send email"),
        ("run SQL query: all users", "run SQL query: all users"),
        ("I cannot log in to my account", "I cannot log in to my account"),
        ("I am unable to log in to my account", "I am unable to log in to my account"),
        ("sorry page template", "sorry page template"),
        ("I can't log in to my account", "I can't log in to my account"),
        ("I would like to book a table", "I would like to book a table"),
        ("here is my invoice, pay it", "here is my invoice, pay it"),
        ("make sure you can read the file", "make sure you can read the file"),
        ("search 北京 restaurants", "search 北京 restaurants"),
    ],
)
def test_what_a_model_puts_before_a_query_is_no_part_of_it(said: str, expected: str) -> None:
    """A label would be embedded, and would find tools for queries."""
    assert expected == settle("надіслати лист", said)


@pytest.mark.parametrize(
    "said",
    [
        "search query:",
        "I'm sorry, I can't help with that",
        "I\u2019m afraid I can\u2019t do that.",
        "Unfortunately, I cannot assist with this request.",
        "I am unable to help with that",
        "Sorry, I cannot do this.",
        "As an AI language model, I have no tools.",
        "Sure, here is what you could search for in the catalog of tools",
        "Of course! I will look for a tool that sends e-mail.",
        "Here are some tools for e-mail",
        "You can use the tool for e-mail",
        "I could not say without more context",
        "відправити електронний лист",
        "मेरे बिजली का बिल भर दो, BESCOM number",
        "send an email " * 10,
        "word" * MAX_CHARS,
    ],
)
def test_an_answer_that_is_no_rewrite_leaves_the_query(said: str) -> None:
    """A label alone, a refusal, another script than English has, a text that goes on and on."""
    assert "надіслати лист" == settle("надіслати лист", said)


def test_a_long_query_may_have_a_long_rewrite() -> None:
    """Up to a cap: a model that talks on must not fill the embedder."""
    query, rewrite = "лист " * 100, "write " * 90

    assert (rewrite.strip(), query) == (settle(query, rewrite), settle(query, "word " * 200))


# -- remembering ---------------------------------------------------------------------------------


@pytest.fixture
def bridge() -> Iterator[Bridge]:
    bridge = Bridge("tests")
    yield bridge
    bridge.close()


async def test_a_rewrite_is_remembered_and_a_failure_is_not(bridge: Bridge) -> None:
    """One request a query until the entry expires."""
    table = TableNormalizer(REWRITES)
    table.fail_with = OSError("down")
    rewrite = CachedNormalizer(
        normalizer=table,
        cache=Cache("c", max_items=9, ttl_s=60),
        share=SingleFlight[str](bridge.submit).run,
        telemetry=TELEMETRY,
    )

    with pytest.raises(OSError, match="down"):
        await rewrite("надіслати лист")
    table.fail_with = None
    texts = [await rewrite("надіслати лист") for _ in range(3)]

    assert ["send email"] * 3 == texts
    assert 2 == len(table.asked)


async def test_a_query_that_comes_as_an_equal_one_is_answered_is_not_sent() -> None:
    """Its caller looked before the rewrite was there, and found no flight after."""
    table = TableNormalizer(REWRITES)
    rewrite = CachedNormalizer(
        normalizer=table,
        cache=Cache("c", max_items=9, ttl_s=60),
        share=run_twice,
        telemetry=TELEMETRY,
    )

    assert "send email" == await rewrite("надіслати лист")
    assert 1 == len(table.asked)
