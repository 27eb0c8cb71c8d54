"""A scripted model in a process of its own, for a soak: it searches, has the user's word repeated
by a tool, and says what the tool said.

    python -m benchmarks.repeating

It prints its base URL and serves until its standard input is closed. In a process of its own, so
that memory and CPU of the asking process are the client's alone.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from subprocess import PIPE, Popen

from gateway.testing import Call, ModelRequest, ScriptedModel, Turn

_FORGET_S = 0.5


def repeated(request: ModelRequest) -> Turn:
    """Search, call the echo with the user's word, say what it said."""
    word = request.user_text
    if request.progress == 0:
        return Turn(calls=(Call("search_tools", {"query": "repeat a word"}),))
    if request.progress == 1:
        return Turn(calls=(Call("echo", {"word": word}),))
    return Turn(str(request.last_tool_results()[0]["content"]))


@contextmanager
def repeating() -> Iterator[str]:
    """Run it; give the base URL."""
    with Popen(
        [sys.executable, "-m", "benchmarks.repeating"], stdin=PIPE, stdout=PIPE, text=True
    ) as server:
        try:
            yield server.stdout.readline().strip() if server.stdout else ""
        finally:
            if server.stdin:
                server.stdin.close()


def main() -> None:
    """Serve until nobody listens any more."""
    ended = threading.Event()

    def wait() -> None:
        sys.stdin.read()
        ended.set()

    with ScriptedModel(repeated) as model:
        print(model.base_url, flush=True)
        threading.Thread(target=wait, daemon=True).start()
        while not ended.wait(_FORGET_S):
            # Its log is of no use here.
            model.forget()


if __name__ == "__main__":
    main()
