"""``tool_choice`` in all its forms, in both wire formats. Pure.

* A demand (``required``, a named function) is met by the first calls, of our tools too; later turns
  choose freely, or the model would have to call tools for ever.
* ``none`` and a list of allowed tools stay as the host wrote them, with every turn.
"""

from __future__ import annotations

from collections.abc import Mapping


def demanded(choice: object) -> tuple[str, ...]:
    """Give the names of the functions in *choice*; () for the plain forms."""
    if not isinstance(choice, Mapping):
        return ()
    listed = _inner(choice).get("tools")
    entries = listed if isinstance(listed, list | tuple) else [choice]
    named = (_inner(each).get("name") for each in entries if isinstance(each, Mapping))
    return tuple(name for name in named if isinstance(name, str))


def relaxed(choice: object) -> object:
    """Give *choice* for the turns after a call was made."""
    if choice == "required":
        return "auto"
    if not isinstance(choice, Mapping):
        return choice
    if choice.get("type") != "allowed_tools":
        return "auto"
    inner = {**_inner(choice), "mode": "auto"}
    return inner if _inner(choice) is choice else {**choice, "allowed_tools": inner}


def _inner(entry: Mapping[str, object]) -> Mapping[str, object]:
    """Chat Completions nests under the type's own name, Responses does not."""
    inner = entry.get(str(entry.get("type")))
    return inner if isinstance(inner, Mapping) else entry
