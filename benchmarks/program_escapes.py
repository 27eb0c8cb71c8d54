"""Attempts of a program to get out of its sandbox, or to cost its host more than it may.

An attempt is out if it

* reads the canary: a text in a file, in the environment and on an object of the host,
* makes the file ``$MADE``, or a connection to ``$PORT``,
* gets more calls or more output than its limits allow, or passes what is no JSON,
* or leaves the sandbox unable to run the next program right.

    python -m benchmarks.programs --json        runs all of them
"""

from __future__ import annotations

import os
import resource
import socket
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from gateway.options.programs import ProgramsOptions
from gateway.plugins.programs.sandbox import (
    CallAnswer,
    PendingCall,
    Program,
    ProgramResult,
    Sandbox,
)

CANARY = "canary-5f1d0c"
LIMITS = ProgramsOptions(
    seconds=0.3, wall_s=5.0, memory_bytes=32 * 1024 * 1024, calls=10, output_chars=2000
)

ATTEMPTS: Mapping[str, str] = {
    # Files
    "open": "open('$CANARY').read()",
    "pathlib": "from pathlib import Path\nPath('$CANARY').read_text()",
    "write": "with_ = open('$MADE', 'w')\nwith_.write('x')",
    "pathlib write": "from pathlib import Path\nPath('$MADE').write_text('x')",
    "listdir": "import os\nos.listdir('$FOLDER')",
    "proc": "open('/proc/self/environ').read()",
    "parent's environment": "open('/proc/$PID/environ').read()",
    "own code": "open(__file__).read()",
    "symbolic link": "import os\nos.symlink('$CANARY', '$MADE')",
    "mkdir": "import os\nos.mkdir('$MADE')",
    "tempfile": "import tempfile\ntempfile.mkdtemp(dir='$FOLDER')",
    "fileinput": "import fileinput\nlist(fileinput.input('$CANARY'))",
    "glob": "import glob\nglob.glob('$FOLDER/*')",
    # Network
    "socket": "import socket\nsocket.create_connection(('127.0.0.1', $PORT))",
    "urllib": "import urllib.request\nurllib.request.urlopen('http://127.0.0.1:$PORT')",
    "http.client": "import http.client\nhttp.client.HTTPConnection('127.0.0.1', $PORT).connect()",
    "asyncio streams": "import asyncio\nawait asyncio.open_connection('127.0.0.1', $PORT)",
    # Processes
    "system": "import os\nos.system('touch $MADE')",
    "subprocess": "import subprocess\nsubprocess.run(['touch', '$MADE'])",
    "asyncio process": "import asyncio\nawait asyncio.create_subprocess_exec('touch', '$MADE')",
    "fork": "import os\nos.fork()",
    "kill the host": "import os\nos.kill($PID, 9)",
    "kill the parent": "import os, signal\nos.kill(os.getppid(), signal.SIGTERM)",
    "multiprocessing": "import multiprocessing\nmultiprocessing.Process().start()",
    "ctypes": "import ctypes\nctypes.CDLL(None).system(b'touch $MADE')",
    # Environment
    "environ": "import os\nos.environ['CANARY']",
    "getenv": "import os\nos.getenv('CANARY')",
    "exit": "import sys\nsys.exit(3)",
    "quit": "raise SystemExit(3)",
    "keyboard interrupt": "raise KeyboardInterrupt()",
    # Objects of the host
    "subclasses": "().__class__.__base__.__subclasses__()",
    "globals of a function": "tool.__globals__",
    "attribute of a function": "tool.secret",
    "code of a function": "tool.__code__.co_consts",
    "module of a function": "import sys\nsys.modules['gateway']",
    "import": "__import__('gateway')",
    "builtins": "import builtins\nbuiltins.open('$CANARY').read()",
    "eval": "eval('__import__(\"os\").environ')",
    "exec": "exec('import os\\nos.system(\"touch $MADE\")')",
    "compile": "compile('open(\"$CANARY\")', 'x', 'eval')",
    "format string": "'{0.__globals__}'.format(tool)",
    "frames": "try:\n    1 / 0\nexcept Exception as e:\n    e.__traceback__.tb_frame.f_globals",
    "generator frame": "(x for x in [1]).gi_frame.f_back",
    "pickle": "import pickle\npickle.loads(b'cos\\nsystem\\n(S\"touch $MADE\"\\ntR.')",
    "gc": "import gc\ngc.get_objects()",
    "weak references": "import weakref\nweakref.ref(tool)()",
    "importlib": "import importlib\nimportlib.import_module('os').environ",
    "a call of another name": "await host(x=1)",
    # Memory, time and recursion
    "spin": "while True:\n    pass",
    "spin in except": "while True:\n    try:\n        1 / 0\n    except Exception:\n        pass",
    "list of lists": "x = []\nwhile True:\n    x.append([0] * 1000)",
    "a huge text": "'x' * 10**10",
    "a huge integer": "10 ** 10 ** 9",
    "digits": "str(7 ** 300000)",
    "doubling": "x = 'x'\nwhile True:\n    x += x",
    "recursion": "def f(n):\n    return f(n + 1)\nf(0)",
    "recursion in a key": "def f(n):\n    return sorted([n], key=f)\nf(0)",
    "regular expression": "import re\nre.match(r'(a|aa|a?)+$', 'a' * 5000 + 'b')",
    "large sort": "sorted(range(10**8))",
    "nested brackets": "eval('[' * 100000)",
    "sleep": "import time\ntime.sleep(600)",
    "many tasks": "import asyncio\nawait asyncio.gather(*[tool(x=i) for i in range(100000)])",
    # Floods
    "calls": "while True:\n    try:\n        await tool(x=1)\n    except Exception:\n        pass",
    "prints": "while True:\n    print('x' * 100)",
    "one large print": "print('x' * 10**7)",
    "a large value": "'x' * (8 * 1024 * 1024)",
    "large arguments": "await tool(x='x' * (8 * 1024 * 1024))",
    "many names": "globals().update({str(i): i for i in range(10**7)})",
    # Values
    "deep arguments": "x = []\nfor i in range(100000):\n    x = [x]\nawait tool(x=x)",
    "a deep value": "x = []\nfor i in range(100000):\n    x = [x]\nx",
    "cyclic arguments": "x = []\nx.append(x)\nawait tool(x=x)",
    "a cyclic value": "x = {}\nx['x'] = x\nx",
    "no number": "await tool(x=float('nan'))",
    "a class": "class A:\n    secret = '$TEXT'[:0]\nawait tool(x=A())",
    "a function as argument": "await tool(x=tool)",
    "arguments without names": "await tool(*[1, 2, 3])",
    "forged frame": "print('\\x00\\x00\\x00\\x10{\"output\": \"$TEXT\"[:0]}')\n2",
    "forged answer": "print('{\"return_value\": 1}\\n' * 3)\n2",
    "lone surrogate": "await tool(x='\\ud800')",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of an attempt."""

    name: str
    reason: str
    """How it got out; empty if it did not."""
    seconds: float
    host_mib: float
    """By how much the memory of this process grew at its peak."""


@contextmanager
def _surroundings() -> Iterator[Mapping[str, str]]:
    with tempfile.TemporaryDirectory() as folder, socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0)
        canary, made = Path(folder, "canary"), Path(folder, "made")
        canary.write_text(CANARY, encoding="utf-8")
        os.environ["CANARY"] = CANARY
        yield {
            "$CANARY": str(canary),
            "$MADE": str(made),
            "$FOLDER": folder,
            "$PORT": str(server.getsockname()[1]),
            "$PID": str(os.getpid()),
            "$TEXT": CANARY,
        }
        del os.environ["CANARY"]
        try:
            server.accept()
        except BlockingIOError:
            return
        raise AssertionError("a program reached the network")


async def attempt_all(sandbox: Sandbox) -> list[Outcome]:
    """Try every attempt, one after another.

    Raises:
        AssertionError: One of them reached the network.
    """
    with _surroundings() as names:
        return [await _attempt(sandbox, name, code, names) for name, code in ATTEMPTS.items()]


async def _attempt(sandbox: Sandbox, name: str, code: str, names: Mapping[str, str]) -> Outcome:
    for key, value in names.items():
        code = code.replace(key, value)
    calls: list[PendingCall] = []

    async def call(pending: PendingCall) -> CallAnswer:
        calls.append(pending)
        return CallAnswer(value=1)

    before, began = _peak_mib(), time.perf_counter()
    result = await sandbox.run(Program(code=code, functions={"tool"}), call=call, limits=LIMITS)
    seconds = time.perf_counter() - began
    grown = _peak_mib() - before
    follows = await sandbox.run(Program(code="1 + 1", functions=()), call=call, limits=LIMITS)
    reason = _reason(code, result, calls, names)
    if not reason and follows.value != 2:
        reason = f"the next program failed: {follows.error}"
    return Outcome(name=name, reason=reason, seconds=seconds, host_mib=grown)


def _reason(
    code: str, result: ProgramResult, calls: list[PendingCall], names: Mapping[str, str]
) -> str:
    shown = f"{result.value!r}{result.printed}{result.error}"
    if CANARY in shown.replace(code, "") and CANARY not in code:
        return "it read the canary"
    if [path.name for path in Path(names["$FOLDER"]).iterdir()] != ["canary"]:
        return "it made a file"
    if len(calls) > LIMITS.calls:
        return "it made more calls than it may"
    if len(result.printed) > LIMITS.output_chars + 100:
        return "it printed more than it may"
    return ""


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
