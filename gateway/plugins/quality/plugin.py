"""The plugin ``quality``: tools that test requests do not find want attention."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from gateway.hookspecs import IssueSource, hookimpl


@hookimpl
def register_issues() -> Sequence[IssueSource]:
    """Register the tools that the newest evaluation report never found."""
    return [IssueSource(name="never_found", find=_find)]


def _find(build: Any, reports: Path | None) -> Iterable[object]:
    if reports is None:
        return ()
    from gateway.plugins.quality.never_found import never_found  # noqa: PLC0415  (pydantic is heavy)

    return never_found(build, reports)
