"""Embedding after a fork of the process."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="it forks")

# A child that hangs is ended by its own alarm.
SCRIPT = """
import asyncio, os, signal, sys
from gateway.plugins.local.embedder import LocalEmbedder
from gateway.plugins.local.encoders import E5

embedder = LocalEmbedder((E5,))

def vector():
    return asyncio.run(embedder.embed(["Send an e-mail."], role="query")).vectors.tolist()

def forked(work):
    child = os.fork()
    if not child:
        signal.alarm(300)
        sys.exit(7 if work() else 1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

ours = vector()
print(forked(lambda: ours == vector()), forked(lambda: True), ours == vector())
"""


def test_forked_child_embeds_and_exits_normally() -> None:
    """The threads of the parent's engine do not exist in the child."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", SCRIPT],
        capture_output=True,
        text=True,
        check=False,
    )

    assert ("7 7 True", "") == (done.stdout.strip(), done.stderr)
