"""Concurrent conversations on one client, which must not mix."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

from openai import OpenAI

from gateway import AutoDiscoveryClient, Gateway
from gateway.testing import Call, ModelRequest, Turn
from tests.apps.testing.driving import rejoin
from tests.core.chat.stage import Stage, user_messages

THREADS = 16


def echo(canary: str) -> str:
    """Repeat a word."""
    return f"<{canary}>"


def parrot(request: ModelRequest) -> Turn:
    """Return the model's next turn: a search, a call that repeats the user's word, then the results
    as text.
    """
    word = request.user_text
    if request.progress == 0:
        return Turn("", (Call("search_tools", {"query": f"repeat a word {word}"}),))
    if request.progress == 1:
        return Turn("", (Call("echo", {"canary": word}), Call("call_tool", {
            "name": "echo", "arguments": {"canary": word.upper()}})))  # fmt: skip
    return Turn(" ".join(str(result["content"]) for result in request.last_tool_results()))


def test_sixteen_threads_share_one_client_without_mixing_conversations(
    stage: Stage, openai: OpenAI, functions: Gateway
) -> None:
    """Half of the threads stream; all begin at the same time."""
    functions.add_tool(echo)
    role = stage.act(parrot)
    create = AutoDiscoveryClient(openai, functions).chat.completions.create
    barrier = threading.Barrier(THREADS)

    def talk(word: str) -> str:
        barrier.wait(10)
        if int(word.split("-")[1]) % 2:
            answer = create(model=role.model, messages=user_messages(word))
            return answer.choices[0].message.content or ""
        chunks = create(model=role.model, messages=user_messages(word), stream=True)
        return str(rejoin(chunks)["choices"][0]["message"]["content"])

    words = [f"canary-{number}" for number in range(THREADS)]
    with ThreadPoolExecutor(THREADS) as pool:
        answers = list(pool.map(talk, words))

    assert [f"<{word}> <{word.upper()}>" for word in words] == answers
    assert 3 * THREADS == len(role.requests)
    for request in role.requests:
        assert 1 == sum(f"{word}'" in repr(request.messages) for word in words)
