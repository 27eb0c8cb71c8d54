"""Azure's clients: other addresses, another key, and the gateway around them all the same."""

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


def given(stage: Stage, **more: Any) -> dict[str, Any]:
    return {
        "azure_endpoint": stage.server.azure_endpoint,
        "api_key": "azure-key",
        "api_version": VERSION,
        "max_retries": 0,
        **more,
    }


def addresses(requests: list[ModelRequest]) -> list[tuple[str, str, str]]:
    """Where requests went, with the version and the key of Azure."""
    return [(each.path, each.query["api-version"], each.headers["api-key"]) for each in requests]


@pytest.mark.parametrize("deployment", [None, "mine"])
def test_a_deployment_is_asked_at_its_own_address_in_every_turn(
    stage: Stage, functions: Gateway, deployment: str | None
) -> None:
    """Named by the client, else by the model of the request; a stream and a copy as well."""
    role = working(stage)
    with AzureOpenAI(**given(stage, azure_deployment=deployment)) as azure:
        client = AutoDiscoveryClient(azure, functions)
        reply = client.chat.completions.create(model=role.model, messages=ASK)
        with client.with_options(timeout=9).chat.completions.create(
            model=role.model, messages=ASK, stream=True
        ) as stream:
            texts = [each.choices[0].delta.content or "" for each in stream if each.choices]

    path = f"/openai/deployments/{deployment or role.model}/chat/completions"
    assert "It is 3." == reply.choices[0].message.content == "".join(texts)
    assert [(path, VERSION, "azure-key")] * 6 == addresses(role.requests)


def test_responses_go_where_azure_has_them(stage: Stage, functions: Gateway) -> None:
    """Not under the deployment."""
    role = working(stage)
    with AzureOpenAI(**given(stage, azure_deployment="mine")) as azure:
        response = AutoDiscoveryClient(azure, functions).responses.create(
            model=role.model, input="Please."
        )

    assert "It is 3." == response.output_text
    assert [("/openai/responses", VERSION, "azure-key")] * 3 == addresses(role.requests)


def test_a_wrapper_is_of_the_class_of_its_client_too(stage: Stage, functions: Gateway) -> None:
    """Libraries ask, and treat Azure in another way."""
    with AzureOpenAI(**given(stage)) as azure, OpenAI(api_key="none") as plain:
        client = AutoDiscoveryClient(azure, functions)
        other = AutoDiscoveryClient(plain, functions)

        for each in (client, client.with_options(timeout=1), copy.copy(client)):
            assert isinstance(each, AutoDiscoveryClient)
            assert isinstance(each, AzureOpenAI)
        assert isinstance(client, BaseAzureClient)
        assert not isinstance(other, AzureOpenAI)
        assert AutoDiscoveryClient is other.__class__
