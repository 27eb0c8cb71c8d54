"""JSON as people write it, with comments and trailing commas. The one home of json5."""

from __future__ import annotations

import json
import re

from gateway.errors import ConfigError

_FAULT = re.compile(r"<string>:(\d+) (.*) at column (\d+)", re.DOTALL)


def parse(text: str, *, where: str) -> object:
    """Read *text*.

    Args:
        text: JSON; what plain JSON does not allow is read as JSON5.
        where: The file, for messages.

    Raises:
        ConfigError: It is neither; the message has line and column.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ConfigError(f"{where!r} is nested too deeply to be read") from None
    except json.JSONDecodeError as error:
        plain = error
    # Only who writes comments pays for it.
    import json5  # noqa: PLC0415  (slow to load, and seldom needed)

    try:
        return json5.loads(text)
    except (ValueError, RecursionError) as error:
        fault = _FAULT.search(str(error))
        line, column, told = plain.lineno, plain.colno, plain.msg
        if fault is not None and int(fault[1]) != line:
            line, column, told = int(fault[1]), int(fault[3]), fault[2]
        raise ConfigError(f"{where!r} is not JSON: line {line}, column {column}: {told}") from None
