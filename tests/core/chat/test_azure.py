"""Wrapped Azure clients, which use other URLs and another key header."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from openai import AzureOpenAI, OpenAI
from openai.lib.azure import BaseAzureClient

from gateway import AutoDiscoveryClient, Gateway
from gateway.testing import ModelRequest, Turn
from tests.core.chat.stage import ASK, SUM, Role, Stage, find

VERSION = "2026-01-01"


def working(stage: Stage) -> Role:
    return stage.cast(
        find("add two numbers"),
        SUM,
        lambda request: Turn(f"It is {request.last_tool_results()[0]['content']}."),
    )


def azure_options(stage: Stage, **more: Any) -> dict[str, Any]:
    return {
        "azure_endpoint": stage.server.azure_endpoint,
        "api_key": "azure-key",
        "api_version": VERSION,
        "max_retries": 0,
        **more,
    }


def addresses(requests: list[ModelRequest]) -> list[tuple[str, str, str]]:
    """Return path, API version and key of each request."""
    return [
        (request.path, request.query["api-version"], request.headers["api-key"])
        for request in requests
    ]


@pytest.mark.parametrize("deployment", [None, "mine"])
def test_every_turn_uses_the_url_of_the_azure_deployment(
    stage: Stage, functions: Gateway, deployment: str | None
) -> None:
    """The deployment is named by the client or by the model of the request. Streams and copies of
    the client use the same URL.
    """
    role = working(stage)
    with AzureOpenAI(**azure_options(stage, azure_deployment=deployment)) as azure:
        client = AutoDiscoveryClient(azure, functions)
        reply = client.chat.completions.create(model=role.model, messages=ASK)
        with client.with_options(timeout=9).chat.completions.create(
            model=role.model, messages=ASK, stream=True
        ) as stream:
            texts = [chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices]

    path = f"/openai/deployments/{deployment or role.model}/chat/completions"
    assert "It is 3." == reply.choices[0].message.content == "".join(texts)
    assert [(path, VERSION, "azure-key")] * 6 == addresses(role.requests)


def test_responses_use_the_azure_url_without_a_deployment(stage: Stage, functions: Gateway) -> None:
    role = working(stage)
    with AzureOpenAI(**azure_options(stage, azure_deployment="mine")) as azure:
        response = AutoDiscoveryClient(azure, functions).responses.create(
            model=role.model, input="Please."
        )

    assert "It is 3." == response.output_text
    assert [("/openai/responses", VERSION, "azure-key")] * 3 == addresses(role.requests)


def test_wrapper_is_an_instance_of_the_class_of_its_client(
    stage: Stage, functions: Gateway
) -> None:
    """Libraries check the class of a client, and handle Azure differently."""
    with AzureOpenAI(**azure_options(stage)) as azure, OpenAI(api_key="none") as plain:
        client = AutoDiscoveryClient(azure, functions)
        other = AutoDiscoveryClient(plain, functions)

        for wrapper in (client, client.with_options(timeout=1), copy.copy(client)):
            assert isinstance(wrapper, AutoDiscoveryClient)
            assert isinstance(wrapper, AzureOpenAI)
        assert isinstance(client, BaseAzureClient)
        assert not isinstance(other, AzureOpenAI)
        assert AutoDiscoveryClient is other.__class__
