"""JSON as people write it, with comments and trailing commas. The one home of json5.

A name that stands twice in one object is refused: JSON leaves open which of them counts, so that
people and programs would read two different servers under one name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from gateway.errors import ConfigError

_FAULT = re.compile(r"<string>:(\d+) (.*) at column (\d+)", re.DOTALL)


def parse(text: str, *, where: str) -> object:
    """Read *text*.

    Args:
        text: JSON; what plain JSON does not allow is read as JSON5.
        where: The file, for messages.

    Raises:
        ConfigError: It is neither; the message has line and column. Or a name stands twice in one
            of its objects.
    """

    def unique_members(pairs: Iterable[tuple[str, object]]) -> dict[str, object]:
        members: dict[str, object] = {}
        for name, value in pairs:
            if name in members:
                raise ConfigError(f"{where!r} has {name!r} twice in one object: remove one of them")
            members[name] = value
        return members

    try:
        return json.loads(text, object_pairs_hook=unique_members)
    except RecursionError:
        raise ConfigError(f"{where!r} is nested too deeply to be read") from None
    except json.JSONDecodeError as error:
        plain = error
    # Only who writes comments pays for it.
    import json5  # noqa: PLC0415  (slow to load, and seldom needed)

    try:
        return json5.loads(text, object_pairs_hook=unique_members)
    except (ValueError, RecursionError) as error:
        fault = _FAULT.search(str(error))
        line, column, message = plain.lineno, plain.colno, plain.msg
        if fault is not None and int(fault[1]) != line:
            line, column, message = int(fault[1]), int(fault[3]), fault[2]
        raise ConfigError(
            f"{where!r} is not JSON: line {line}, column {column}: {message}"
        ) from None
