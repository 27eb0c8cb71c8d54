"""The exit codes, in one table: `EXITS`, which ``--help`` prints."""

from __future__ import annotations

from collections.abc import Mapping

from gateway.errors import ConfigError, GatewayError, InvalidRequestError

OK = 0
NOTHING = 1
USAGE = 2
UNAVAILABLE = 3
INTERRUPTED = 130

EXITS: Mapping[int, str] = {
    OK: "done",
    NOTHING: "nothing was found or agreed to, the tool failed, or a demo conversation did",
    USAGE: "bad usage, configuration, tool name, arguments, graph document or query",
    UNAVAILABLE: "a server or the vector store could not be used; the others' part is printed",
    INTERRUPTED: "interrupted from the keyboard",
}
"""Every exit code and what it means."""

EPILOG = "Exit codes: " + "; ".join(f"{code} {meaning}" for code, meaning in EXITS.items()) + "."
"""What ``--help`` says of them."""


def exit_code(error: GatewayError) -> int:
    """Give the exit code for *error*: ours to mend, or a fault of something outside."""
    return USAGE if isinstance(error, ConfigError | InvalidRequestError) else UNAVAILABLE
