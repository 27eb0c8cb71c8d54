"""The exit codes, in one table that ``--help`` prints."""

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
    OK: "done",
    NOTHING: (
        "nothing was found or agreed to, a change, the tool or a demo conversation failed, an eval "
        "got worse, or a strict lint has findings"
    ),
    USAGE: "bad usage, configuration, tool name, arguments, graph document or query",
    UNAVAILABLE: "a server or the vector store that was needed could not be used",
    RETRY_LATER: "a checked tool's server is down: try again later",
    NEEDS_PERSON: "a checked tool needs a person first, or something wants attention",
    UNKNOWN: "nothing is known of a checked tool",
    INTERRUPTED: "interrupted from the keyboard",
}
"""Every exit code and its meaning."""

EPILOG = "Exit codes: " + "; ".join(f"{code} {text}" for code, text in EXIT_CODES.items()) + "."
"""The table as ``--help`` prints it."""
