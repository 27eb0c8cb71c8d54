"""Normalizers: rewrites by a chat model, checks of its answers, and caching."""

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


async def test_normalizer_returns_the_models_rewrite_or_a_blank_text(
    normalizer: Normalizer,
) -> None:
    """For a blank text, the search uses the original query."""
    rewritten = await normalizer.rewrite("надіслати лист")
    unchanged = await normalizer.rewrite("plain")

    assert ("send email", "") == (rewritten.text, unchanged.text)


async def test_normalizer_sends_one_request_with_the_query_as_user_message(
    model: ScriptedModel,
) -> None:
    """The instructions are the system message, the answer is limited, and the temperature is
    zero.
    """
    with OpenAI(base_url=model.base_url, api_key="test") as client:
        normalizer = OpenAINormalizer(client, model="small")
        rewrite = await normalizer.rewrite("надіслати лист")

    (request,) = model.requests
    assert ["system", "user"] == [message["role"] for message in request.messages]
    assert "надіслати лист" == request.user_text
    assert ("small", 0, 96) == (
        request.model,
        request.body["temperature"],
        request.body["max_completion_tokens"],
    )
    port = model.base_url.split(":")[2].split("/")[0]
    assert f"127.0.0.1:{port}/small" == normalizer.model_id
    assert "127.0.0.1" == normalizer.provider
    assert (rewrite.input_tokens or 0) > 0
    assert (rewrite.output_tokens or 0) > 0


async def test_normalizer_omits_temperature_if_the_model_rejects_it() -> None:
    """Reasoning models reject it. Only the first of all requests contains it."""

    def reason(request: ModelRequest) -> Turn:
        if "temperature" in request.body:
            raise InvalidRequestError("Unsupported value: 'temperature' does not support 0")
        return answer(request)

    with (
        ScriptedModel(reason) as model,
        OpenAI(base_url=model.base_url, api_key="test", max_retries=0) as client,
    ):
        normalizer = OpenAINormalizer(client, model="m")
        rewrites = [(await normalizer.rewrite("надіслати лист")).text for _ in range(2)]

    assert ["send email"] * 2 == rewrites
    assert [True, False, False] == ["temperature" in sent.body for sent in model.requests]


async def test_normalizer_raises_the_error_of_its_openai_client(model: ScriptedModel) -> None:
    """A search catches the error and uses the original query."""
    model.fail(Faults(status=400))
    with OpenAI(base_url=model.base_url, api_key="test") as client, pytest.raises(APIStatusError):
        await OpenAINormalizer(client, model="m").rewrite("a")


# -- extraction of a query from a model's answer --------------------------------------------------


@pytest.mark.parametrize(
    ("query", "reply", "expected"),
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
def test_settle_takes_the_first_line_and_keeps_literals_of_the_query(
    query: str, reply: str, expected: str
) -> None:
    """Literals are ids, addresses, versions and repositories, which must not be translated."""
    assert (expected,) == settle(query, reply)


@pytest.mark.parametrize(
    ("query", "reply", "expected"),
    [
        ("купи й надішли", "buy a ticket\nsend the ticket", ("buy a ticket", "send the ticket")),
        ("купи й надішли", "1. buy a ticket\n2) send it", ("buy a ticket", "send it")),
        ("купи й надішли", "- buy a ticket\n\n* send it", ("buy a ticket", "send it")),
        ("купи й надішли", "Queries:\nbuy a ticket\nsend it", ("buy a ticket", "send it")),
        ("купи й надішли", '["buy a ticket", "send it"]', ("buy a ticket", "send it")),
        (
            "купи й надішли",
            '```json\n{"queries": ["buy it", "send it"]}\n```',
            ("buy it", "send it"),
        ),
        ("купи", '{"query": "buy a ticket"}', ("buy a ticket",)),
        ("купи", "<think>The user wants\na ticket.</think>\nbuy a ticket", ("buy a ticket",)),
        ("купи", "<thinking>buy what", ("купи",)),
        ("купи", "buy a ticket\n\nThis query names the action.", ("buy a ticket",)),
        ("купи", "buy a ticket\nbuy a ticket", ("buy a ticket",)),
        ("один два", "one\ntwo\nthree\nfour\nfive", ("one", "two", "three", "four")),
        ("купи для a@b.com", "buy it\nsend it", ("buy it a@b.com", "send it")),
        ("купи для a@b.com", "buy it\nsend it to a@b.com", ("buy it", "send it to a@b.com")),
        ("Send it", "send it\nlist all", ("send it", "list all")),
    ],
)
def test_settle_returns_one_query_for_each_step(
    query: str, reply: str, expected: tuple[str, ...]
) -> None:
    """Reasoning, list marks, labels, fences and JSON around the steps are removed."""
    assert expected == settle(query, reply)


@pytest.mark.parametrize(
    ("query", "reply"),
    [
        ("wie spät ist es in Tokio", "wie spät ist es jetzt in Tokio"),
        ("Rechnung für den Kunden", "Rechnung für Kunden erstellen"),
        ("envía la factura para el cliente", "enviar factura para el cliente"),
        ("pogoda dla Krakowa jutro", "prognoza pogody dla Krakowa"),
    ],
)
def test_settle_refuses_a_rewrite_in_the_language_of_the_query(query: str, reply: str) -> None:
    assert (query,) == settle(query, reply)


@given(st.text(min_size=1, max_size=80), st.text(max_size=80))
def test_settle_never_loses_a_literal_of_the_query(query: str, reply: str) -> None:
    settled = "\n".join(settle(query, reply)).casefold()

    assert settled
    assert all(literal.casefold() in settled for literal in literals(query))


@pytest.mark.parametrize(
    ("reply", "expected"),
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
def test_settle_removes_a_label_before_the_rewritten_query(reply: str, expected: str) -> None:
    """A label such as "Search query:" would be embedded, and would match search tools."""
    assert (expected,) == settle("надіслати лист", reply)


@pytest.mark.parametrize(
    "reply",
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
def test_settle_returns_the_query_if_the_answer_is_not_a_rewrite(reply: str) -> None:
    """Such answers are a label alone, a refusal, chat, a script other than Latin, and a long
    text.
    """
    assert ("надіслати лист",) == settle("надіслати лист", reply)


def test_settle_accepts_a_long_rewrite_of_a_long_query() -> None:
    """There is a maximum, because a long answer must not fill the embedder's input."""
    query, rewrite = "лист " * 100, "write " * 90

    assert ((rewrite.strip(),), (query,)) == (settle(query, rewrite), settle(query, "word " * 200))


# -- caching of rewrites --------------------------------------------------------------------------


@pytest.fixture
def bridge() -> Iterator[Bridge]:
    bridge = Bridge("tests")
    yield bridge
    bridge.close()


async def test_normalizer_caches_rewrites_but_not_failures(bridge: Bridge) -> None:
    table = TableNormalizer(REWRITES)
    table.fail_with = OSError("down")
    rewrite = CachedNormalizer(
        normalizer=table,
        cache=Cache("c", max_items=9, ttl_s=60),
        share=SingleFlight[tuple[str, ...]](bridge.submit).run,
        telemetry=TELEMETRY,
    )

    with pytest.raises(OSError, match="down"):
        await rewrite("надіслати лист")
    table.fail_with = None
    texts = [await rewrite("надіслати лист") for _ in range(3)]

    assert [("send email",)] * 3 == texts
    assert 2 == len(table.asked)


async def test_normalizer_uses_a_rewrite_cached_since_the_first_check() -> None:
    """A caller may check the cache just before an equal request stores its rewrite, and then find
    no running request to share.
    """
    table = TableNormalizer(REWRITES)
    rewrite = CachedNormalizer(
        normalizer=table,
        cache=Cache("c", max_items=9, ttl_s=60),
        share=run_twice,
        telemetry=TELEMETRY,
    )

    assert ("send email",) == await rewrite("надіслати лист")
    assert 1 == len(table.asked)
