"""A scripted model in a process of its own: CPU and memory of the asking process are the client's.

    python -m benchmarks.scripted_service

It prints its base URL and serves until its standard input is closed.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from subprocess import PIPE, Popen

from gateway.testing import Call, ModelRequest, ScriptedModel, Turn

GREETING = "Hello."
SEARCH = "please search"
_FORGET_S = 0.5


def turn(request: ModelRequest) -> Turn:
    """Greet, search, or search and have the user's word repeated by a tool."""
    word = request.user_text
    if word == GREETING:
        return Turn("word " * 20)
    if request.progress == 0:
        return Turn(calls=(Call("search_tools", {"query": "repeat a word"}),))
    if word == SEARCH:
        return Turn("Hello.")
    if request.progress == 1:
        return Turn(calls=(Call("echo", {"word": word}),))
    return Turn(str(request.last_tool_results()[0]["content"]))


@contextmanager
def scripted_service() -> Iterator[str]:
    """Run it; yield the base URL."""
    with Popen(
        [sys.executable, "-m", "benchmarks.scripted_service"], stdin=PIPE, stdout=PIPE, text=True
    ) as server:
        try:
            yield server.stdout.readline().strip() if server.stdout else ""
        finally:
            if server.stdin:
                server.stdin.close()


def main() -> None:
    """Serve until standard input is closed."""
    ended = threading.Event()

    def wait() -> None:
        sys.stdin.read()
        ended.set()

    with ScriptedModel(turn) as model:
        print(model.base_url, flush=True)
        threading.Thread(target=wait, daemon=True).start()
        while not ended.wait(_FORGET_S):
            # Its log is of no use here.
            model.forget()


if __name__ == "__main__":
    main()
