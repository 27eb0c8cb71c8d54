"""Faults of JSON that a pydantic model refused, as messages."""

from __future__ import annotations

from pydantic import ValidationError


def validation_message(error: ValidationError) -> str:
    """Return the first fault of *error*: its place and what is wrong, without the value."""
    fault = error.errors(include_input=False, include_url=False, include_context=False)[0]
    where = ".".join(str(part) for part in fault["loc"])
    message = fault["msg"].removeprefix("Value error, ")
    return f"{where}: {message}" if where else message
