"""Plugin ``quality``: issues about tools that test requests never find."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from gateway.hookspecs import IssueSource, hookimpl


@hookimpl
def register_issues() -> Sequence[IssueSource]:
    """Register the issues about tools that test requests never find."""
    return [IssueSource(name="never_found", find=_find_never_found)]


def _find_never_found(build: Any, reports: Path | None) -> Iterable[object]:
    if reports is None:
        return ()
    from gateway.plugins.quality.never_found import never_found  # noqa: PLC0415  (pydantic is heavy)

    return never_found(build, reports)
