"""Exit codes, in one table that ``--help`` prints."""

from __future__ import annotations

from collections.abc import Mapping

OK = 0
NOTHING = 1
USAGE = 2
UNAVAILABLE = 3
RETRY_LATER = 10
NEEDS_PERSON = 11
UNKNOWN = 12
INTERRUPTED = 130

EXIT_CODES: Mapping[int, str] = {
    OK: "success",
    NOTHING: (
        "nothing was found or agreed to, a change, tool or demo conversation failed, an evaluation "
        "got worse, or a strict lint has findings"
    ),
    USAGE: "usage, configuration, tool name, arguments, graph document or query are wrong",
    UNAVAILABLE: "a required server or vector store could not be used",
    RETRY_LATER: "the server of a checked tool is down; try again later",
    NEEDS_PERSON: "a checked tool needs a person first, or there are issues",
    UNKNOWN: "a checked tool is unknown",
    INTERRUPTED: "interrupted from the keyboard",
}

EPILOG = "Exit codes: " + "; ".join(f"{code} {text}" for code, text in EXIT_CODES.items()) + "."
