"""A server in raw JSON-RPC that sends the answers of a file: ``verbatim.py ANSWERS RECORD``.

ANSWERS maps each method to lines, one per request; the last one is repeated, and null is no answer.
ID in a line becomes the id of the request. RECORD gets a line for each request.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

ANSWERS = json.loads(Path(sys.argv[1]).read_text("utf-8"))
UNKNOWN = '{"jsonrpc": "2.0", "id": ID, "error": {"code": -32601, "message": "no such method"}}'


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        method = message["method"]
        with Path(sys.argv[2]).open("a", encoding="utf-8") as record:
            record.write(f"{method} {os.getpid()}\n")
        lines = ANSWERS.get(method, [UNKNOWN])
        answer = lines.pop(0) if len(lines) > 1 else lines[0]
        if answer is not None:
            sys.stdout.write(answer.replace("ID", str(message["id"])) + "\n")
            sys.stdout.flush()


main()
