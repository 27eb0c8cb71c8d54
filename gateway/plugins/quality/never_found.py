"""Issues: tools that no request of the newest evaluation report finds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from gateway.attention.issues import Issue
from gateway.errors import ConfigError
from gateway.index.snapshot import IndexBuild
from gateway.plugins.quality.report import newest_report, report_files

_MAX_DETAILS = 3
"""Maximum number of tools that are named as ranking above one."""


def never_found(build: IndexBuild, reports: Path) -> Iterator[Issue]:
    """Yield the tools that no request of the newest report finds, if they may be found now."""
    files = report_files(reports)
    try:
        report = newest_report(reports)
    except ConfigError as error:
        yield Issue(kind="configuration", id=files[-1].name, detail=str(error))
        return
    enabled = {each.id for each in build.snapshot.entities if each.hints.enabled}
    for tool in report.tools if report else ():
        if tool.findable or tool.id not in enabled:
            continue
        detail = f"none of {tool.requests} test requests finds it"
        if above := [*tool.outranked_by][:_MAX_DETAILS]:
            detail += f"; above it: {', '.join(above)}"
        if tool.missing_words:
            detail += f"; words that it lacks: {', '.join(tool.missing_words)}"
        at = files[-1].stat().st_mtime
        yield Issue(kind="never_found", id=tool.id, detail=detail, since=at)
