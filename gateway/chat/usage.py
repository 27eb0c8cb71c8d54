"""Token usage, added up over the requests of one call. Pure."""

from __future__ import annotations

from pydantic import BaseModel


def added(first: BaseModel | None, second: BaseModel) -> BaseModel:
    """Add two usages field by field, details too; a field that only one knows is kept."""
    if first is None:
        return second
    total = _added(first.model_dump(exclude_none=True), second.model_dump(exclude_none=True))
    return type(second).model_validate(total)


def _added(first: dict[str, object], second: dict[str, object]) -> dict[str, object]:
    total = dict(first)
    for key, value in second.items():
        known = total.get(key)
        if isinstance(known, dict) and isinstance(value, dict):
            total[key] = _added(known, value)
        elif isinstance(known, int | float) and isinstance(value, int | float):
            total[key] = known + value
        else:
            total[key] = value
    return total
