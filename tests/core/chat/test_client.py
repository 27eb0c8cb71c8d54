"""Other methods of the wrapper: they reach the bare client, or are refused with a reason."""

from __future__ import annotations

from typing import Any

import openai as sdk
import pytest
from openai import AsyncOpenAI, OpenAI

from gateway import AsyncAutoDiscoveryClient, AutoDiscoveryClient, Gateway, Middleware, SyncGateway
from gateway.chat.accounting import Event
from gateway.errors import ConfigError, InvalidRequestError
from gateway.testing import Turn
from tests.core.chat.stage import ASK, Speaker, Stage, find


def test_other_methods_reach_the_bare_client(
    stage: Stage, openai: OpenAI, functions: Gateway
) -> None:
    """A wrapper replaces the client in the whole program, so all its other methods must work."""
    client = AutoDiscoveryClient(openai, functions)

    assert stage.server.model in [model.id for model in client.models.list()]
    assert 1 == len(client.embeddings.create(model="m", input="a").data)
    assert openai.base_url == client.base_url
    assert openai is client.openai
    assert functions is client.gateway
    with pytest.raises(sdk.NotFoundError):
        client.chat.completions.retrieve("chatcmpl-1")


def test_wrapper_is_an_openai_client(openai: OpenAI, functions: Gateway) -> None:
    """Attributes that are set on the wrapper are set on the wrapped client."""
    client = AutoDiscoveryClient(openai.with_options(), functions)

    client.max_retries = 7

    assert isinstance(client, OpenAI)
    assert 7 == client.openai.max_retries == client.max_retries
    assert client.embeddings is client.openai.embeddings
    assert str(openai.base_url) == str(client.base_url)


async def test_unsupported_methods_are_refused_with_a_remedy(
    stage: Stage, openai: OpenAI, speaker: Speaker, functions: Gateway
) -> None:
    """Losing the tools without an error would be worse."""
    client = AutoDiscoveryClient(openai, functions)
    twin = AsyncAutoDiscoveryClient(speaker.asynchronous, functions)
    role = stage.cast(Turn("Hi."))
    old: Any = {"functions": [{"name": "mine"}], "model": role.model, "messages": ASK}

    with pytest.raises(InvalidRequestError, match=r"'functions' cannot.*as 'tools'.* as \.openai"):
        client.chat.completions.create(**old)
    with pytest.raises(InvalidRequestError, match="'background' cannot"):
        client.responses.create(model=role.model, input="x", background=True)
    with pytest.raises(InvalidRequestError, match=r"beta\.responses is not wrapped"):
        client.beta.responses.create(model=role.model, input="x")
    with pytest.raises(InvalidRequestError, match=r"responses\.connect is not wrapped"):
        client.responses.connect()
    with pytest.raises(InvalidRequestError, match="'functions' cannot"):
        await twin.chat.completions.create(**old)
    with pytest.raises(InvalidRequestError, match=r"responses\.connect is not wrapped"):
        twin.responses.connect()
    assert [] == role.requests


@pytest.mark.parametrize("way", ["with_options", "copy"])
def test_client_with_other_options_keeps_discovery(
    stage: Stage, openai: OpenAI, functions: Gateway, way: str
) -> None:
    """`with_options` is the SDK's way to limit a single call."""
    events: list[Event] = []
    client = AutoDiscoveryClient(openai, functions, observer=events.append)
    role = stage.cast(find("add two numbers"), Turn("Done."))

    changed = getattr(client, way)(timeout=7.0)
    changed.chat.completions.create(model=role.model, messages=ASK)

    assert 7.0 == changed.timeout != client.timeout
    assert "add" in role.tool_names[1]
    assert len(events) == 4


async def test_closing_the_wrapper_closes_the_client_but_not_the_gateway(
    stage: Stage, functions: Gateway
) -> None:
    """As with `OpenAI()`, the end of a `with` block closes. The gateway may be shared by other
    clients.
    """
    url = stage.server.base_url
    with AutoDiscoveryClient(OpenAI(base_url=url, api_key="test"), functions) as blocking:
        assert not blocking.is_closed()
    async with AsyncAutoDiscoveryClient(
        AsyncOpenAI(base_url=url, api_key="test"), functions
    ) as client:
        assert not client.is_closed()

    assert blocking.is_closed()
    assert client.is_closed()
    assert 3 == len(await functions.list_tools())


def test_wrapper_requires_a_client_and_a_gateway(
    openai: OpenAI, speaker: Speaker, functions: Gateway
) -> None:
    """The error is raised by the constructor, and not by the first request."""
    plain: Any = AutoDiscoveryClient
    twin: Any = AsyncAutoDiscoveryClient
    blocking = SyncGateway(functions)
    client = "^openai must be an openai"

    with pytest.raises(
        ConfigError, match=client + r"\.OpenAI .* wrap it by AsyncAutoDiscoveryClient"
    ):
        plain(speaker.asynchronous, functions)
    with pytest.raises(
        ConfigError, match=client + r"\.AsyncOpenAI .* wrap it by AutoDiscoveryClient"
    ):
        twin(openai, functions)
    for wrapper in (plain, twin):
        with pytest.raises(ConfigError, match=client + r".* client, got Gateway$"):
            wrapper(functions, openai)
    wrong_gateway: Any
    for wrong_gateway, named in ((blocking, "SyncGateway: pass its .gateway"), (openai, "OpenAI")):
        with pytest.raises(ConfigError, match=f"^gateway must be a Gateway, got {named}$"):
            plain(openai, wrong_gateway)
        with pytest.raises(ConfigError, match=f"^gateway must be a Gateway, got {named}$"):
            Middleware(wrong_gateway)
    assert isinstance(plain(plain(openai, functions), functions), OpenAI)
