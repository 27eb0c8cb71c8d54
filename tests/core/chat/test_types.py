# pyright: strict
"""Static types of the wrapper, which must be those of the bare client. mypy checks this file with
the other tests; the test runs pyright in strict mode.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, assert_type

import pytest
from openai import AsyncOpenAI, AsyncStream, OpenAI, Stream
from openai.lib.streaming.chat import AsyncChatCompletionStreamManager, ChatCompletionStreamManager
from openai.lib.streaming.responses import ResponseStreamManager
from openai.pagination import SyncPage
from openai.types import CreateEmbeddingResponse, Model
from openai.types.chat import ChatCompletion, ChatCompletionChunk, ParsedChatCompletion
from openai.types.responses import ParsedResponse, Response, ResponseStreamEvent
from pydantic import BaseModel

from gateway import AsyncAutoDiscoveryClient, AutoDiscoveryClient
from tests.core.chat.stage import ASK

M = "m"


class Reading(BaseModel):
    """Type to which a reply is parsed."""

    value: int


def blocking(client: AutoDiscoveryClient) -> None:
    chat, responses = client.chat.completions, client.responses
    assert_type(chat.create(model=M, messages=ASK), ChatCompletion)
    assert_type(chat.create(model=M, messages=ASK, stream=True), Stream[ChatCompletionChunk])
    assert_type(
        chat.parse(model=M, messages=ASK, response_format=Reading), ParsedChatCompletion[Reading]
    )
    assert_type(
        chat.stream(model=M, messages=ASK, response_format=Reading),
        ChatCompletionStreamManager[Reading],
    )
    assert_type(chat.with_raw_response.create(model=M, messages=ASK).parse(), ChatCompletion)
    with chat.with_streaming_response.create(model=M, messages=ASK) as response:
        assert_type(response.parse(), ChatCompletion)
    assert_type(responses.create(model=M, input=""), Response)
    assert_type(responses.create(model=M, input="", stream=True), Stream[ResponseStreamEvent])
    assert_type(responses.parse(model=M, input="", text_format=Reading), ParsedResponse[Reading])
    assert_type(
        responses.stream(model=M, input="", text_format=Reading), ResponseStreamManager[Reading]
    )
    assert_type(client.models.list(), SyncPage[Model])
    assert_type(client.embeddings.create(model=M, input=""), CreateEmbeddingResponse)
    assert_type(client.openai, OpenAI)
    assert_type(client.with_options(timeout=1), AutoDiscoveryClient)
    assert_type(client.max_retries, int)


async def awaiting(client: AsyncAutoDiscoveryClient) -> None:
    chat, responses = client.chat.completions, client.responses
    assert_type(await chat.create(model=M, messages=ASK), ChatCompletion)
    assert_type(
        await chat.create(model=M, messages=ASK, stream=True), AsyncStream[ChatCompletionChunk]
    )
    assert_type(await responses.create(model=M, input=""), Response)
    assert_type(
        await responses.create(model=M, input="", stream=True), AsyncStream[ResponseStreamEvent]
    )
    assert_type(
        await chat.parse(model=M, messages=ASK, response_format=Reading),
        ParsedChatCompletion[Reading],
    )
    assert_type(
        chat.stream(model=M, messages=ASK, response_format=Reading),
        AsyncChatCompletionStreamManager[Reading],
    )
    raw = await chat.with_raw_response.create(model=M, messages=ASK)
    assert_type(raw.parse(), ChatCompletion)
    assert_type(
        await responses.parse(model=M, input="", text_format=Reading), ParsedResponse[Reading]
    )
    assert_type(client.openai, AsyncOpenAI)
    assert_type(client.with_options(timeout=1), AsyncAutoDiscoveryClient)


def test_wrapper_classes_are_subclasses_of_the_client_classes() -> None:
    """mypy checks the static types of the functions above; this test checks the classes."""
    assert issubclass(AutoDiscoveryClient, OpenAI)
    assert issubclass(AsyncAutoDiscoveryClient, AsyncOpenAI)


WRONG = """# pyright: strict
from typing import assert_type

from gateway import AutoDiscoveryClient


def ask(client: AutoDiscoveryClient) -> None:
    assert_type(client.chat.completions.create(model="m", messages=[]), int)
"""


def test_pyright_in_strict_mode_reports_no_errors(tmp_path: Path) -> None:
    """The test also adds a wrong line to the file, which pyright must report."""
    pytest.importorskip("pyright", reason="comes with the extra `dev`")
    wrong = tmp_path / "wrong.py"
    wrong.write_text(WRONG, encoding="utf-8")
    python = sys.executable
    checked = subprocess.run(
        [python, "-m", "pyright", "--pythonpath", python, "--outputjson", __file__, wrong],
        cwd=Path(__file__).parents[3],
        env={**os.environ, "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"},
        capture_output=True,
        check=False,
        text=True,
    )

    report: dict[str, Any] = json.loads(checked.stdout)

    assert 2 == report["summary"]["filesAnalyzed"]
    assert [(str(wrong), "reportAssertTypeFailure")] == [
        (diagnostic["file"], diagnostic["rule"]) for diagnostic in report["generalDiagnostics"]
    ]
