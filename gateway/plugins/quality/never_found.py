"""Issues: tools that no request of the newest evaluation report finds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from gateway.attention.issues import Issue
from gateway.errors import ConfigError
from gateway.index.snapshot import IndexBuild
from gateway.plugins.quality.report import newest_report, report_files

_MAX_DETAILS = 3
"""Maximum number of higher ranked tools in a message."""


def never_found(build: IndexBuild, reports: Path) -> Iterator[Issue]:
    """Yield an issue for each enabled tool that no request of the newest report finds."""
    files = report_files(reports)
    try:
        report = newest_report(reports)
    except ConfigError as error:
        yield Issue(kind="configuration", id=files[-1].name, detail=str(error))
        return
    enabled = {entity.id for entity in build.snapshot.entities if entity.hints.enabled}
    for tool in report.tools if report else ():
        if tool.findable or tool.id not in enabled:
            continue
        detail = f"found by 0 of {tool.requests} test requests"
        if above := [*tool.outranked_by][:_MAX_DETAILS]:
            detail += f"; higher ranked: {', '.join(above)}"
        if tool.missing_words:
            detail += f"; missing words: {', '.join(tool.missing_words)}"
        modified = files[-1].stat().st_mtime
        yield Issue(kind="never_found", id=tool.id, detail=detail, since=modified)
